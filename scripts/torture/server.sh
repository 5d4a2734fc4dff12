#!/bin/bash
# Attacks on `trunkline serve` over emulated paths of 1 ms and of 100 ms there and back: a thousand connections a second of each of
# five kinds, from the client's own address, and from one that is not allowed. Under each a client asks 20 times.
# Prints tried and survived; ends with 1 where a try was not served. Takes about two minutes. PROFILE=dev takes the development build.
set -euo pipefail
cd "$(dirname "$0")/../.."
profile=${PROFILE:-release}
cargo build --locked --profile "$profile" -p trunkline
cargo build --locked --profile "$profile" -p trunkline-probe --example siege
built=${CARGO_TARGET_DIR:-target}/$([ "$profile" = dev ] && echo debug || echo "$profile")
PATH="$(realpath "$built"):$(realpath "$built/examples"):$PATH"
TRUNKLINE_KEY=$(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')
export PATH TRUNKLINE_KEY
results=$(mktemp)
trap 'rm -f "$results"' EXIT

# besiege DELAY OPTIONS-OF-SERVE COMMAND: the emulated run may be INVALID on a busy machine; what counts is who was served.
besiege() {
    trunkline shell --best-effort --delay "$1" --peer "exec trunkline serve --max-sessions 100 $2" -- \
        sh -c "ulimit -n \$(ulimit -Hn); $3" 2>/dev/null | tee -a "$results" || true
}

for delay in 0.5ms 50ms; do
    echo "== $delay each way, from the client's own address"
    besiege "$delay" "" "siege {peer}"
    echo "== $delay each way, from an address that is not allowed"
    besiege "$delay" "--allow 10.77.0.2" "ip addr add 10.77.0.99/24 dev tl0; siege {peer} 29804 10.77.0.99"
done
tried=$(grep -c ' of 20 served' "$results" || true)
survived=$(grep -c ': 20 of 20 served' "$results" || true)
echo "attacks tried: $tried of 20, survived: $survived"
[ "$tried" = 20 ] && [ "$survived" = "$tried" ]
