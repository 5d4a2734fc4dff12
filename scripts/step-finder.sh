#!/usr/bin/env bash
# The step finder, pointed at paths that it does not know: window, rate and delay are drawn by chance, the
# path is emulated, its window is the server's, and `trunkline probe rtt --fit` is told nothing but the
# server's address. Prints what was drawn beside what was found. Ends with 0 where each figure of each try is
# within 5 % of the truth, else with 1.
#
#     scripts/step-finder.sh [TRIES] [SEED]
#
# Drawn evenly on a logarithmic scale: blocks of 64 to 1024 octets, 256 kbit/s to 20 Mbit/s, 2 to 100 ms one
# way; and 1 to 7 blocks outstanding. A window leaves a trace only where the sender has to wait for it: a
# draw with which the line would be idle for less than a fifth of the round trip is drawn again.
set -euo pipefail
# Figures are written with a point, whatever the user's locale.
export LC_ALL=C
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

here=$(cd "$(dirname "$0")" && pwd)
trunkline=${TRUNKLINE:-$here/../target/release/trunkline}
tries=${1:-20}
seed=${2:-1}
# A try that takes longer is ended and counts as failed.
LONGEST=90

say() { printf '%s\n' "$*" >&2; }

fail() {
    say "step-finder: $*"
    exit 1
}

work=
running=
cleanup() {
    trap '' INT TERM
    if [[ -n $running ]]; then
        kill -TERM "$running" 2>/dev/null || true
        wait "$running" 2>/dev/null || true
    fi
    [[ -n $work ]] && rm -rf "$work"
    return 0
}
interrupted() {
    say "step-finder: interrupted, cleaning up"
    exit 130
}
trap cleanup EXIT
trap interrupted INT TERM HUP

# One line for each try: block, blocks, bit/s, microseconds one way. The generator is Park and Miller's
# minimal standard (CACM 31, 1988), so that every awk draws the same.
draw() {
    awk -v tries="$tries" -v seed="$seed" '
        function unit() { state = (state * 16807) % 2147483647; return state / 2147483647 }
        function between(low, high) { return low * exp(unit() * log(high / low)) }
        BEGIN {
            state = (seed * 7919 + 12345) % 2147483646 + 1
            for (k = 0; k < 20; k++) unit()
            while (drawn < tries) {
                block = int(between(64, 1024) + 0.5); count = 1 + int(unit() * 7)
                rate = int(between(256e3, 20e6) + 0.5); delay = int(between(2000, 100000) + 0.5)
                # A block takes 87 octets besides its own in its datagram; the line carries all but the first
                # while that is answered.
                carried = (count - 1) * (block + 87) * 8e6 / rate
                if (2 * delay - carried < 0.2 * 2 * delay) continue
                print block, count, rate, delay
                drawn++
            }
        }'
}

# Runs one try; its document goes to the file.
try() { # block count rate delay file
    # In the background and waited for, so that an interrupt is answered at once.
    timeout --foreground -k 10 "$LONGEST" "$trunkline" shell --rate "$3bit" --delay "$4us" --no-outside \
        --best-effort --peer "'$trunkline' serve --window $1x$2" -- \
        "$trunkline" probe rtt "{peer}" --transport urp --fit "$work/path.toml" --json \
        >"$5" 2>"$work/log" </dev/null &
    running=$!
    local status=0
    wait "$running" || status=$?
    running=
    return "$status"
}

row() { # number block count rate delay file seconds
    jq -r --argjson window $(($2 * $3)) --argjson rate "$4" --argjson delay "$5" \
        --arg head "$1 $2x$3" --arg seconds "$7" '
        def digits(n): . * pow(10; n) | round / pow(10; n) | tostring;
        def off(truth): if . == null then null else (. / truth - 1) * 100 end;
        def show(n): if . == null then "?" else digits(n) end;
        .path as $p
        | ($p.window_octets | off($window)) as $w
        | ($p.rate_bit_per_s.value | off($rate)) as $r
        | ($p.delay_ms.value | off($delay / 1000)) as $d
        | ([$w, $r, $d] | all(. != null and (. | fabs) <= 5)) as $ok
        | [$head, $window, ($p.window_octets | show(0)), ($w | show(1)),
           ($rate / 1000 | digits(0)), (($p.rate_bit_per_s.value // null) | if . == null then "?" else . / 1000 | digits(0) end), ($r | show(1)),
           ($delay / 1000 | digits(2)), ($p.delay_ms.value | show(2)), ($d | show(1)),
           $seconds, (if $ok then "ok" else "MISSED" end)]
        | join(" ")' "$6"
}

print_row() {
    awk '{ printf "%3s %8s %7s %7s %6s %8s %8s %6s %8s %8s %6s %5s  %s\n", $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13 }'
}

[[ $tries =~ ^[0-9]+$ && $seed =~ ^[0-9]+$ ]] || fail "write: step-finder.sh [TRIES] [SEED], two numbers"
[[ -x $trunkline ]] || fail "there is no $trunkline: build it, or name one in TRUNKLINE"
command -v jq >/dev/null || fail "jq is missing: install it (apt-get install jq)"
work=$(mktemp -d)
TRUNKLINE_KEY=$(head -c 24 /dev/urandom | base64)
export TRUNKLINE_KEY

printf '%s\n' "$tries paths drawn with seed $seed; errors in percent"
printf '# window octets found error kbit/s found error ms found error s verdict\n' |
    awk '{ printf "%3s %8s %7s %7s %6s %8s %8s %6s %8s %8s %6s %5s  %s\n", $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13 }'
good=0
number=0
draw >"$work/drawn"
while read -r block count rate delay <&3; do
    number=$((number + 1))
    began=$SECONDS
    try "$block" "$count" "$rate" "$delay" "$work/found" || true
    took=$((SECONDS - began))
    # The document of the probe comes first, whatever follows.
    if ! line=$(row "$number" "$block" "$count" "$rate" "$delay" "$work/found" "$took" 2>"$work/why"); then
        line="$number ${block}x$count $((block * count)) ? ? $((rate / 1000)) ? ? $((delay / 1000)) ? ? $took FAILED"
        grep -a 'trunkline:' "$work/log" | tail -n 5 >&2 || true
    fi
    printf '%s\n' "$line" | print_row
    case $line in
    *" ok") good=$((good + 1)) ;;
    *) grep -a 'cannot tell' "$work/log" >&2 || true ;;
    esac
done 3<"$work/drawn"
printf '%s\n' "$good of $tries within 5 % in window, rate and delay"
((good == tries))
