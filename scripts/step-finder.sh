#!/usr/bin/env bash
# The step finder, pointed at paths that it does not know: what a transport shows of a path is drawn by
# chance, the path is emulated, and `trunkline probe rtt --fit` is told nothing but the server's address.
# Prints what was drawn beside what was found. Ends with 0 where each figure of each try is within 5 % of
# the truth, else with 1.
#
#     scripts/step-finder.sh [TRIES] [SEED] [TRANSPORT]
#
# urp   window, rate, delay. The window is the server's. (The probe's protocol has to know it and gets it from
#       the server; the fit is told the length of a block and its headers and not how many may be outstanding.)
# tcp   window, rate, delay. By turns the initial congestion window, in segments, of both hosts' routes,
#       and the window that both ends offer, in segments.
# udp   rate, delay, and the largest message that goes in one packet. The path's largest packet is drawn. Where
#       one more fragment's header takes less than LEAST_STEP microseconds, that is left to the socket, which
#       knows it too; what is said to be measured has to be right in any case.
#
# Drawn evenly on a logarithmic scale: 256 kbit/s to 20 Mbit/s, 2 to 100 ms one way; blocks of 64 to 1024
# octets and 1 to 7 of them; windows of 3 to 20 segments; packets of 1280 to 4000 octets. A window leaves a
# trace only where the sender has to wait for it: a draw with which the line would be idle for less than a
# fifth of the round trip is drawn again.
set -euo pipefail
# Figures are written with a point, whatever the user's locale.
export LC_ALL=C
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

here=$(cd "$(dirname "$0")" && pwd)
trunkline=${TRUNKLINE:-$here/../target/release/trunkline}
tries=${1:-20}
seed=${2:-1}
transport=${3:-urp}
# A try that takes longer is ended and counts as failed.
LONGEST=170
# Octets of a full segment with time stamps, on Ethernet.
SEGMENT=1448
# Microseconds of a fragment's header, one way, that should show.
LEAST_STEP=40

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

# One line for each try: what the transport shows (urp: BLOCKxBLOCKS, tcp: initial=N or window=N segments, udp:
# mtu=OCTETS), the octets of it, bit/s, microseconds one way. The generator is Park and Miller's minimal
# standard (CACM 31, 1988), so that every awk draws the same.
draw() {
    awk -v tries="$tries" -v seed="$seed" -v transport="$transport" -v segment="$SEGMENT" '
        function unit() { state = (state * 16807) % 2147483647; return state / 2147483647 }
        function between(low, high) { return low * exp(unit() * log(high / low)) }
        # What the line carries of a window while its first packet is answered leaves so much idle time?
        function idle(packet, count, rate, delay) {
            return 2 * delay - (count - 1) * packet * 8e6 / rate >= 0.2 * 2 * delay
        }
        BEGIN {
            state = (seed * 7919 + 12345) % 2147483646 + 1
            for (k = 0; k < 20; k++) unit()
            while (drawn < tries) {
                if (transport == "urp") {
                    block = int(between(64, 1024) + 0.5); count = 1 + int(unit() * 7)
                } else if (transport == "tcp") count = int(between(3, 20.99))
                else mtu = int(between(1280, 4000) + 0.5)
                rate = int(between(256e3, 20e6) + 0.5); delay = int(between(2000, 100000) + 0.5)
                if (transport == "urp") {
                    # A block takes 87 octets besides its own in its datagram.
                    if (!idle(block + 87, count, rate, delay)) continue
                    print block "x" count, block * count, rate, delay
                } else if (transport == "tcp") {
                    if (!idle(segment + 52, count, rate, delay)) continue
                    print (drawn % 2 ? "window=" : "initial=") count, count * segment, rate, delay
                } else {
                    # Headers: 20 of IP, 8 of UDP, 40 of the message.
                    print "mtu=" mtu, mtu - 68, rate, delay
                }
                drawn++
            }
        }'
}

# Runs one try; its document goes to the file.
try() { # what rate delay file
    local serve="'$trunkline' serve" probe="'$trunkline' probe rtt {peer} --transport $transport"
    local path=(--rate "$2bit" --delay "$3us") before=
    case $1 in
    initial=*) before="ip route change 10.77.0.0/24 dev tl0 initcwnd ${1#*=} && " ;;
    window=*)
        serve+=" --tcp-window $((${1#*=} * SEGMENT))"
        probe+=" --tcp-window $((${1#*=} * SEGMENT))"
        ;;
    mtu=*) path+=(--mtu "${1#*=}") ;;
    *) serve+=" --window $1" ;;
    esac
    # In the background and waited for, so that an interrupt is answered at once.
    timeout --foreground -k 10 "$LONGEST" "$trunkline" shell "${path[@]}" --no-outside \
        --best-effort --peer "sh -c \"${before}exec $serve\"" -- \
        sh -c "${before}exec $probe --fit '$work/path.toml' --json" \
        >"$4" 2>"$work/log" </dev/null &
    running=$!
    local status=0
    wait "$running" || status=$?
    running=
    return "$status"
}

row() { # number what octets rate delay file seconds
    jq -r --argjson octets "$3" --argjson rate "$4" --argjson delay "$5" \
        --argjson least "$LEAST_STEP" --arg what "$2" --arg head "$1 $2" --arg seconds "$7" '
        def digits(n): . * pow(10; n) | round / pow(10; n) | tostring;
        def off(truth): if . == null then null else (. / truth - 1) * 100 end;
        def show(n): if . == null then "?" else digits(n) end;
        .path as $p
        | (if $what | startswith("initial=") then $p.initial_window_octets
           elif $what | startswith("mtu=") then
               (if $p.segment.told_by == "measurement" then $p.segment.octets else null end)
           else $p.window_octets end) as $found
        # The header of a fragment, 20 octets.
        | (($what | startswith("mtu=")) and 160e6 / $rate < $least) as $may_miss
        | ($found | off($octets)) as $w
        | ($p.rate_bit_per_s.value | off($rate)) as $r
        | ($p.delay_ms.value | off($delay / 1000)) as $d
        | ([($w // if $may_miss then 0 else null end), $r, $d]
            | all(. != null and (. | fabs) <= 5)) as $ok
        | [$head, $octets, ($found | show(0)), ($w | show(1)),
           ($rate / 1000 | digits(0)), (($p.rate_bit_per_s.value // null) | if . == null then "?" else . / 1000 | digits(0) end), ($r | show(1)),
           ($delay / 1000 | digits(2)), ($p.delay_ms.value | show(2)), ($d | show(1)),
           $seconds, (if $ok then "ok" else "MISSED" end)]
        | join(" ")' "$6"
}

print_row() {
    awk '{ printf "%3s %10s %7s %7s %6s %8s %8s %6s %8s %8s %6s %5s  %s\n", $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13 }'
}

[[ $tries =~ ^[0-9]+$ && $seed =~ ^[0-9]+$ && $transport =~ ^(urp|tcp|udp)$ ]] ||
    fail "write: step-finder.sh [TRIES] [SEED] [TRANSPORT], two numbers and urp, tcp or udp"
[[ -x $trunkline ]] || fail "there is no $trunkline: build it, or name one in TRUNKLINE"
command -v jq >/dev/null || fail "jq is missing: install it (apt-get install jq)"
work=$(mktemp -d)
TRUNKLINE_KEY=$(head -c 24 /dev/urandom | base64)
export TRUNKLINE_KEY

printf '%s\n' "$tries paths by $transport drawn with seed $seed; errors in percent"
printf '# drawn octets found error kbit/s found error ms found error s verdict\n' |
    awk '{ printf "%3s %10s %7s %7s %6s %8s %8s %6s %8s %8s %6s %5s  %s\n", $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13 }'
good=0
number=0
draw >"$work/drawn"
while read -r what octets rate delay <&3; do
    number=$((number + 1))
    began=$SECONDS
    try "$what" "$rate" "$delay" "$work/found" || true
    took=$((SECONDS - began))
    # The document of the probe comes first, whatever follows.
    if ! line=$(row "$number" "$what" "$octets" "$rate" "$delay" "$work/found" "$took" 2>"$work/why") ||
        [[ -z $line ]]; then
        line="$number $what $octets ? ? $((rate / 1000)) ? ? $((delay / 1000)) ? ? $took FAILED"
        grep -a 'trunkline:' "$work/log" | tail -n 5 >&2 || true
    fi
    printf '%s\n' "$line" | print_row
    case $line in
    *" ok") good=$((good + 1)) ;;
    *) grep -a 'cannot tell' "$work/log" >&2 || true ;;
    esac
done 3<"$work/drawn"
printf '%s\n' "$good of $tries within 5 % in all that was drawn"
((good == tries))
