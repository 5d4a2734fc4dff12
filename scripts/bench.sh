#!/usr/bin/env bash
# The benchmarks of `make bench`, each run by the crate that holds it.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ -d crates/bench ]]; then
    scripts/needs.sh bench
    exec cargo run --release --locked -p trunkline-bench
fi
echo "bench: not there yet: crates/bench (the dataplane against a bare forwarder; instructions per packet)" >&2
exit 1
