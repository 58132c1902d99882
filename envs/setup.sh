#!/usr/bin/env bash
# Set up all that Popdesic needs: setup.sh run|test VENV
#
# Python packages go into VENV, pinned and hashed: by uv, or by pip where uv cannot do it. System
# packages come through apt meanwhile, where this user may install them; otherwise one sentence says
# what is missing and what is left out without it. None of them stops a run.
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

# --- system packages --------------------------------------------------------------------------------

may_install() {
    command -v apt-get >/dev/null && { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }
}

apt() {
    local as=()
    [ "$(id -u)" = 0 ] || as=(sudo -n)
    "${as[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq "$@" >/dev/null 2>&1
}

# want COMMAND PACKAGE WHAT: remember PACKAGE, which WHAT needs, unless COMMAND is there.
packages=()
declare -A needed_for
want() {
    PATH=$PATH:/usr/sbin command -v "$1" >/dev/null || remember "$2" "$3"
}
remember() {
    packages+=("$1")
    needed_for[$1]=$2
}

list_packages() {
    if ! /usr/bin/python3 -c 'import graph_tool' 2>/dev/null; then
        remember python3-graph-tool "communities by block model"
    fi
    [ "$goal" = test ] || return 0
    want plink1.9 plink1.9 "the tests against PLINK 1.9"
    want plink2 plink2 "the tests against PLINK 2"
    want bcftools bcftools "the tests against bcftools"
    want beagle beagle "imputation with Beagle and its tests"
    want phylip phylip "the tests of trees against PHYLIP"
    want bgzip tabix "the tests that write bgzip files"
    command -v google-chrome >/dev/null || command -v chromium-browser >/dev/null ||
        want chromium chromium "the test that opens the report in a browser"
    want slurmctld slurm-wlm "the tests that start a Slurm"
    want munged munge "the tests that start a Slurm"
}

# Install what was remembered: all at once, or each by itself where one of them cannot be had.
install_packages() {
    local missing=() package
    if ! may_install; then
        missing=("${packages[@]}")
    else
        apt update || true # an old package list may still do
        apt install -y --no-install-recommends "${packages[@]}" ||
            for package in "${packages[@]}"; do
                apt install -y --no-install-recommends "$package" || missing+=("$package")
            done
    fi
    for package in "${missing[@]}"; do
        echo "setup: $package is not installed, which leaves out ${needed_for[$package]};" \
            "all else works without it (to have it: apt-get install $package)." >&2
    done
}

# --- Python packages --------------------------------------------------------------------------------

make_venv() {
    [ ! -x "$venv/bin/python" ] || return 0
    "$python" -m venv "$venv" 2>/dev/null && return 0
    rm -rf "$venv"
    if may_install && apt update && apt install -y --no-install-recommends python3-venv; then
        "$python" -m venv "$venv"
    else
        echo "setup: $python cannot make a virtual environment; install its venv module" \
            "(apt-get install python3-venv) and run again." >&2
        exit 1
    fi
}

# uv takes seconds where pip takes a minute. It does not read pip's configuration, so a mirror that is
# named there is passed on.
install_by_uv() {
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes \
        -r requirements-uv.txt 2>/dev/null || return
    local index=${PIP_INDEX_URL:-}
    [ -n "$index" ] || index=$("$venv/bin/python" -m pip config get global.index-url 2>/dev/null || true)
    [ -z "$index" ] || export UV_DEFAULT_INDEX=${UV_DEFAULT_INDEX:-$index}
    UV_NATIVE_TLS=1 "$venv/bin/uv" pip install --quiet --python "$venv/bin/python" \
        --require-hashes --compile-bytecode -r "$requirements"
}

install_by_pip() {
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes \
        -r "$requirements"
}

python=$(find_python)
make_venv
list_packages
installing=
if [ ${#packages[@]} -gt 0 ]; then
    install_packages &
    installing=$!
fi
requirements=requirements.txt
[ "$goal" = run ] || requirements=requirements-dev.txt
install_by_uv || { echo "setup: uv failed; using pip instead." >&2 && install_by_pip; }
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
    --no-build-isolation --editable .
# Compiled once here, so that no job has to: about a minute. A job would compile what is missing.
"$venv/bin/python" -m popdesic tune >/dev/null 2>&1 ||
    echo "setup: the kernels could not be compiled in advance; jobs will do it (popdesic tune)." >&2
[ -z "$installing" ] || wait "$installing"
touch "$venv/ready-$goal"
