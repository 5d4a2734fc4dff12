#!/bin/sh
# Builds and runs the benchmark; arguments are passed on (--quick, --json, --only …).
set -eu
cd "$(dirname "$0")/.."

missing=
for tool in valgrind iperf3; do
    command -v "$tool" >/dev/null || missing="$missing $tool"
done
if [ -n "$missing" ]; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        # shellcheck disable=SC2086
        DEBIAN_FRONTEND=noninteractive apt-get install -y -q $missing >&2
    else
        echo "bench: missing$missing: install with apt-get install$missing" >&2
        exit 1
    fi
fi

cargo build --release -q -p trunkline-path --example discipline_cost
cargo build --release -q -p trunkline -p trunkline-bench
exec "${CARGO_TARGET_DIR:-target}/release/trunkline-bench" "$@"
