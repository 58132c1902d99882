#!/usr/bin/env bash
# Set up all that Popdesic needs: setup.sh run|test VENV
#
# System packages come through apt where this user may install them; otherwise one sentence says
# what is missing and what waits for it. Python packages go into VENV, pinned and hashed.
set -euo pipefail
goal=$1
venv=$2
cd "$(dirname "$0")/.."

find_python() {
    for candidate in "${PYTHON:-}" python3.13 python3.12 python3.11 python3; do
        if [ -n "$candidate" ] && command -v "$candidate" >/dev/null &&
            "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    echo "setup: no Python 3.11 to 3.13 is on PATH; install one (apt-get install python3) or set PYTHON." >&2
    exit 1
}

may_install() {
    command -v apt-get >/dev/null && { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }
}

install_packages() {
    local run=()
    [ "$(id -u)" = 0 ] || run=(sudo -n)
    "${run[@]}" apt-get update -qq || true # an old package list may still do
    DEBIAN_FRONTEND=noninteractive "${run[@]}" apt-get install -y -qq --no-install-recommends "$@" \
        >/dev/null
}

# want COMMAND PACKAGE WHAT: remember PACKAGE unless COMMAND is there.
packages=()
waiting=()
want() {
    command -v "$1" >/dev/null || { packages+=("$2") && waiting+=("$3"); }
}

python=$(find_python)
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    packages+=(python3-venv)
    waiting+=("everything (the virtual environment)")
fi
if [ "$goal" = test ]; then
    want plink1.9 plink1.9 "the tests against PLINK 1.9"
    want plink2 plink2 "the tests against PLINK 2"
    want bcftools bcftools "the tests against bcftools"
    want beagle beagle "imputation with Beagle and its tests"
    want phylip phylip "the tests of trees against PHYLIP"
    if ! /usr/bin/python3 -c 'import graph_tool' 2>/dev/null; then
        packages+=(python3-graph-tool)
        waiting+=("communities by block model and their tests")
    fi
    want bgzip tabix "the tests that write bgzip files"
    command -v google-chrome >/dev/null || command -v chromium-browser >/dev/null ||
        want chromium chromium "the test that opens the report in a browser"
    PATH=$PATH:/usr/sbin want slurmctld slurm-wlm "the tests that start a Slurm"
    PATH=$PATH:/usr/sbin want munged munge "the tests that start a Slurm"
fi
if [ ${#packages[@]} -gt 0 ]; then
    if may_install && install_packages "${packages[@]}"; then
        echo "setup: installed ${packages[*]}"
    else
        waits=$(printf '%s; ' "${waiting[@]}")
        echo "setup: please install ${packages[*]} (apt-get install ${packages[*]}); waiting for it: ${waits%; }." >&2
        [[ " ${packages[*]} " != *" python3-venv "* ]] || exit 1
    fi
fi

requirements=requirements.txt
[ "$goal" = run ] || requirements=requirements-dev.txt
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$requirements"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
    --no-build-isolation --editable .
touch "$venv/ready-$goal"
