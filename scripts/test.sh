#!/usr/bin/env bash
# Runs cargo test with these options, and tells at the end how many tests were skipped, and why.
# With TRUNKLINE_NO_SKIP=1 a test that would be skipped fails.
set -euo pipefail
cd "$(dirname "$0")/.."

notes=$(mktemp "${TMPDIR:-/tmp}/trunkline-skips.XXXXXX")
trap 'rm -f "$notes"' EXIT
# Some tests become other users.
chmod 666 "$notes"

status=0
TRUNKLINE_SKIP_LOG=$notes cargo test --locked "$@" || status=$?

# A note is a reason, a tab, and a test.
echo "$(wc -l <"$notes") skipped"
cut -f 1 "$notes" | sort | uniq -c | sort -rn | awk '{ times = $1; $1 = ""; print "  " times " x" $0 }'
exit "$status"
