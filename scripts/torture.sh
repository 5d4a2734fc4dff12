#!/usr/bin/env bash
# Does to the command what users, machines and strangers do to it, and counts what it survived: every script of
# scripts/torture, or those named. Takes some minutes. Ends with 1 where something was not survived.
#   scripts/torture.sh [PART...]        PART: machine, server ...
set -uo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."

parts=("$@")
((${#parts[@]} > 0)) || for file in scripts/torture/*.sh; do parts+=("$(basename "$file" .sh)"); done
failed=0
for part in "${parts[@]}"; do
    echo "=== $part"
    "scripts/torture/$part.sh" || { echo "torture: $part was not survived" >&2; failed=1; }
done
exit $failed
