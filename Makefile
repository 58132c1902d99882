# make run          install what is missing, then run the workflow on the embedded example
# make test         install what is missing, then run the tests
# make concordance  compare with PLINK, bcftools and scikit-learn on real data (concordance.tsv)
# make peers        the same work by other programs on this machine, as a table (build/peers.tsv)
# make test-slurm   run the Slurm tests, which start a Slurm of their own (about 20 minutes)
# make lint         ruff, snakefmt, snakemake --lint
# make format       apply the fixes of ruff and snakefmt
# make docs         build the documentation as a site, build/docs/site (installs the generator)
# make pictures     make the pictures of docs/ from the embedded example (needs Chromium)
# make paper-figures  draw figures of the five papers with our rates beside theirs
# make lock         resolve the dependencies of pyproject.toml again
# make clean        delete results, logs, benchmarks and .snakemake of the embedded example

SHELL := /bin/bash
VENV := .venv
PYTEST_FLAGS ?=
PEERS_FLAGS ?=
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)

.PHONY: run test test-slurm concordance peers lint format docs pictures paper-figures lock clean

run: $(VENV)/ready-run
	snakemake --cores all

# Three workers for two cores: one of them mostly waits for Slurm.
test: $(VENV)/ready-test
	pytest -n 3 --dist loadfile --no-loadscope-reorder $(PYTEST_FLAGS)

concordance: $(VENV)/ready-test
	POPDESIC_CONCORDANCE=$(CURDIR)/concordance.tsv pytest --slow tests/golden/test_concordance.py

peers: $(VENV)/ready-test
	python tests/bench/bench_peers.py $(PEERS_FLAGS)

test-slurm: $(VENV)/ready-test
	pytest tests/slurm --require-slurm --slow -s $(PYTEST_FLAGS)

lint: $(VENV)/ready-test
	ruff check .
	ruff format --check .
	snakefmt --check Snakefile workflow/Snakefile workflow/rules
	snakemake --lint

format: $(VENV)/ready-test
	ruff check --fix .
	ruff format .
	snakefmt Snakefile workflow/Snakefile workflow/rules

$(VENV)/ready-run: requirements.txt requirements-uv.txt pyproject.toml envs/setup.sh
	envs/setup.sh run $(VENV)

$(VENV)/ready-test: requirements-dev.txt requirements-uv.txt pyproject.toml envs/setup.sh
	envs/setup.sh test $(VENV)

docs: $(VENV)/ready-run $(VENV)/ready-docs
	python docs/build_site.py

$(VENV)/ready-docs: requirements-docs.txt | $(VENV)/ready-run
	python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	touch $@

pictures: run
	python docs/make_pictures.py

paper-figures: $(VENV)/ready-run
	python tests/bench/paper_figures.py

# The lock files list versions and hashes, but no package index. `make lock` needs uv, which the
# set-up installs.
LOCK = uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --no-header --no-annotate
COMPILE = $(LOCK) --extra build pyproject.toml
lock:
	echo uv | $(LOCK) - -o requirements-uv.txt
	$(COMPILE) -o requirements.txt
	$(COMPILE) --extra dev -c requirements.txt -o requirements-dev.txt
	$(LOCK) --group docs -c requirements-dev.txt -o requirements-docs.txt
	$(COMPILE) --extra cuda13 -c requirements.txt -o requirements-gpu.txt
	$(COMPILE) --extra cuda12 -c requirements.txt -o requirements-gpu-cuda12.txt

clean:
	rm -rf results logs benchmarks .snakemake
