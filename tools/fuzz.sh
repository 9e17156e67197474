#!/usr/bin/env bash
# Runs every fuzz target of the module, one after another, for $1 each (30s).
set -euo pipefail
cd "$(dirname "$0")/.."
for_each=${1:-30s}

grep -rl --include='*_test.go' '^func Fuzz' . --exclude-dir=build --exclude-dir=.venv | sort |
while read -r file; do
    package=$(dirname "$file")
    sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file" | while read -r target; do
        echo "== $package $target"
        go test "$package" -run '^$' -fuzz "^$target\$" -fuzztime "$for_each" </dev/null
    done
done
