#!/bin/bash
# Attacks on `trunkline serve` over emulated paths of 1 ms and of 100 ms there and back: a thousand connections a second of each kind
# from the client's own host and, where the host's second address is not allowed, from there. Under each a client asks 20 times.
# Prints tried and served; ends with 1 where a try was not served. Takes about two minutes. PROFILE=dev takes the development build.
set -euo pipefail
cd "$(dirname "$0")/../.."
profile=${PROFILE:-release}
cargo build --locked --profile "$profile" -p trunkline
cargo build --locked --profile "$profile" -p trunkline-probe --example siege
built=${CARGO_TARGET_DIR:-target}/$([ "$profile" = dev ] && echo debug || echo "$profile")
export PATH="$(realpath "$built"):$(realpath "$built/examples"):$PATH"
TRUNKLINE_KEY=$(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')
export TRUNKLINE_KEY
results=$(mktemp)
trap 'rm -f "$results"' EXIT
for delay in 0.5ms 50ms; do
    echo "== $delay each way"
    # The run itself may be INVALID on a busy machine: what counts is who was served.
    trunkline shell --best-effort --delay "$delay" --peer 'exec trunkline serve --max-sessions 100 2>/dev/null' -- \
        sh -c 'sleep 1; ulimit -n "$(ulimit -Hn)"; siege {peer}; echo "status $?"' 2>/dev/null | tee -a "$results"
done
tried=$(grep -c ' of 20 served' "$results" || true)
survived=$(grep -c ': 20 of 20 served' "$results" || true)
echo "attacks tried: $tried, survived: $survived"
[ "$tried" = 10 ] && [ "$survived" = "$tried" ]
