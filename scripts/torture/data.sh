#!/bin/bash
# Data of known content through `trunkline shell`, over TCP and in datagrams, over clean and over bad paths: no byte is wrong,
# and what is missing or comes twice is what the tool says that it dropped and duplicated. GIGABYTES (2) in all, in four
# sittings, or those whose names hold the word given; PROFILE=dev takes the development build. Ends with 1 where the counts differ.
#   scripts/torture/data.sh [stream|datagrams|clean|bad]
set -euo pipefail
cd "$(dirname "$0")/../.."
profile=${PROFILE:-release}
cargo build --quiet --locked --profile "$profile" -p trunkline
PATH="$(realpath "${CARGO_TARGET_DIR:-target}/$([ "$profile" = dev ] && echo debug || echo "$profile")"):$PATH"
export PATH
share=$((${GIGABYTES:-2} * 1000000000 / 4))
data=$(realpath scripts/torture/data.py)
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
only=${1:-}
failed=0

# sit NAME tcp|udp OPTIONS...
sit() {
    local name=$1 how=$2
    [[ $name == *$only* ]] || return 0
    shift 2
    echo "== $name: $how, $*"
    trunkline shell --best-effort --json "$@" --peer "exec python3 $data receive $how >$home/found.json" -- \
        sh -c "python3 $data send $how {peer} $share && sleep 1" >"$home/statement.json" 2>"$home/told.txt" ||
        { cat "$home/told.txt"; failed=1; return; }
    python3 - "$how" "$share" "$home" <<'PY' || failed=1
import json, sys

how, share, home = sys.argv[1], int(sys.argv[2]), sys.argv[3]
found = json.load(open(f"{home}/found.json"))
lanes = json.load(open(f"{home}/statement.json"))["state"]["lanes"]
wrong = []
for lane in lanes:
    dropped = sum(lane["dropped"].values())
    print(f"   {lane['name']}: {lane['entered']} in + {lane['duplicated']} copies = {lane['delivered']} out + {dropped} dropped "
          f"+ {lane['in_flight']} in flight; {lane['dropped']}")
    if lane["entered"] + lane["duplicated"] != lane["delivered"] + dropped + lane["in_flight"]:
        wrong.append(f"{lane['name']}: what went in did not come out")
print("   received:", found)
dropped = sum(lanes[0]["dropped"].values())
if how == "tcp":
    blocks = -(-share // (1 << 18)) * (1 << 18)
    if found["wrong_bytes"] or found["bytes"] != blocks:
        wrong.append(f"{found['bytes']} of {blocks} bytes came, {found['wrong_bytes']} of them wrong")
else:
    # The path also carries ARP and the 40 datagrams that end the sitting; the receiver leaves at the first of them.
    others = 60
    if found["wrong"]:
        wrong.append(f"{found['wrong']} datagrams came with another content")
    if not 0 <= dropped - found["missing"] <= others:
        wrong.append(f"{found['missing']} datagrams are missing, the path dropped {dropped}")
    if not 0 <= lanes[0]["duplicated"] - found["duplicates"] <= others:
        wrong.append(f"{found['duplicates']} datagrams came twice, the path duplicated {lanes[0]['duplicated']}")
for line in wrong:
    print("   WRONG:", line)
sys.exit(bool(wrong))
PY
}

sit "clean stream" tcp --delay 1ms
sit "bad stream" tcp --delay 1ms --loss 0.01% --duplicate 0.1% --reorder 0.1%:300us
sit "clean datagrams" udp --delay 200us
sit "bad datagrams" udp --delay 200us --loss 1% --duplicate 1% --reorder 1%:200us
exit $failed
