#!/usr/bin/env bash
# Makes ./.venv if there is none and installs the pinned requirements named as
# arguments into it. On a Debian without ensurepip it brings python3-venv first.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    rm -rf .venv
    if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
        echo "python3 has no ensurepip: installing python3-venv" >&2
        apt-get update -qq && apt-get install -qq -y python3-venv
    fi
    python3 -m venv .venv
fi

arguments=()
for file in "$@"; do arguments+=(--requirement "$file"); done
.venv/bin/python -m pip install --quiet --disable-pip-version-check "${arguments[@]}"
