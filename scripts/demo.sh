#!/usr/bin/env bash
# The measurement of Hawley 1989 with today's programs: ping shares an emulated T1 trunk with a bulk TCP
# transfer, once with one FIFO for all, once with a queue for each channel served round robin.
# Then the same trunk under Datakit's own protocol: predicted, simulated and emulated, in one table.
# Ends with 0 where round robin holds the loaded round trip to a fifth of FIFO's, TCP gets 93 % of what
# the framing leaves it, and the three engines ran, else with 1. What the machine has spoilt is accepted, and
# marked INVALID in every table.
set -euo pipefail
# Figures are written with a point, whatever the user's locale.
export LC_ALL=C
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
trunkline=${TRUNKLINE:-$root/target/release/trunkline}

# The transfer lasts SECONDS_BULK; pings begin when it has been under way for SECONDS_SETTLE.
SECONDS_BULK=20
SECONDS_SETTLE=4
PINGS_IDLE=20
PINGS_LOADED=70
PING_EVERY=0.2
# 36 bytes of data, 8 of ICMP and 20 of IP: 64 bytes, one of Hawley's message sizes.
PING_DATA=36
# Reno fills the queue until it overflows, as Datakit's fixed windows filled it; the default of many
# machines today, BBR, tries to keep the queue empty and would hide what Hawley saw.
CONGESTION=reno

# What a T1 leaves for TCP, in kB/s: 192 of 193 line bits carry frames (Hawley 1989 §2.1), a full frame
# carries 256 bytes in 264, and an IP packet of 1500 bytes 1448 of TCP payload (timestamps on).
allowed_kB() { awk 'BEGIN { printf "%.2f", 1544 * 192 / 193 / 8 * 256 / 264 * 1448 / 1500 }'; }

say() { printf '%s\n' "$*" >&2; }

fail() {
    say "demo: $*"
    exit 1
}

# --- at the near end, in the namespace behind the path -------------------------------------------------

ping_peer() { # count file
    ping -n -s "$PING_DATA" -i "$PING_EVERY" -c "$1" "$TRUNKLINE_PEER" >"$2" || [[ $? == 1 ]]
}

near() { # directory
    local out=$1 bulk
    say "    idle: $PINGS_IDLE pings" 2>&3
    ping_peer "$PINGS_IDLE" "$out/idle"
    say "    loaded: a bulk TCP transfer of $SECONDS_BULK s, and $PINGS_LOADED pings beside it" 2>&3
    iperf3 -c "$TRUNKLINE_PEER" -C "$CONGESTION" -t "$SECONDS_BULK" -J >"$out/bulk" &
    bulk=$!
    sleep "$SECONDS_SETTLE"
    ping_peer "$PINGS_LOADED" "$out/loaded"
    wait "$bulk" || fail "iperf3 failed: $(jq -r '.error // "no reason given"' "$out/bulk")"
}

if [[ ${1:-} == --near ]]; then
    near "$2"
    exit
fi

# --- the run -------------------------------------------------------------------------------------------

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
    say "demo: interrupted, cleaning up"
    exit 130
}
trap cleanup EXIT
trap interrupted INT TERM HUP

measure() { # name, path options
    local out=$work/$1
    shift
    mkdir "$out"
    # In the background and waited for, so that an interrupt is answered at once. Progress of the near
    # end comes by descriptor 3.
    "$trunkline" shell --preset t1-1989 "$@" --no-outside --best-effort --json \
        --peer 'iperf3 -s -1 >/dev/null' -- "$here/demo.sh" --near "$out" \
        3>&2 >"$out/statement" 2>"$out/log" &
    running=$!
    if ! wait "$running"; then
        running=
        cat "$out/log" >&2
        fail "the run failed"
    fi
    running=
    tail -n 1 "$out/statement" | jq -r '
        "    accuracy: " + ([.state.lanes[] | "\(.name) late by p50 \(.lateness.p50), p99 \(.lateness.p99)"] | join("; "))
        + (if .valid then "; VALID" else "; INVALID against the bound of \(.bound), accepted as best effort" end)' >&2
    tail -n 1 "$out/statement" | jq -r 'if .valid then empty else "INVALID" end' >"$out/mark"
}

times() { sed -n 's/.* time=\([0-9.]*\) ms.*/\1/p' "$1" | sort -n; }

# The least value that $2 % of the sorted values in the file do not exceed.
percentile() { # file percent
    times "$1" | awk -v p="$2" '{ v[NR] = $1 }
        END { if (!NR) exit 1; i = int((NR * p + 99) / 100); if (i < 1) i = 1; printf "%.2f", v[i] }'
}

goodput_kB() { jq -e '.end.sum_received.bits_per_second / 8000' "$1"; }

row() { # name
    local out=$work/$1 idle loaded p90 goodput
    idle=$(percentile "$out/idle" 50) || fail "no ping came back over the idle trunk"
    loaded=$(percentile "$out/loaded" 50) || fail "no ping came back over the loaded trunk"
    p90=$(percentile "$out/loaded" 90)
    goodput=$(goodput_kB "$out/bulk") || fail "iperf3 gave no figure for the receiver"
    awk -v n="$1" -v i="$idle" -v l="$loaded" -v p="$p90" -v g="$goodput" -v a="$(allowed_kB)" -v m="$(<"$out/mark")" \
        'BEGIN { printf "%s %s %s %s %.1f %.1f %.1f %s\n", n, i, l, p, l / i, g, 100 * g / a, m }'
}

table() { # file of rows
    local lost
    printf '\n%s\n' "64-byte pings beside a bulk TCP transfer ($CONGESTION) over a T1 trunk of 1.544 Mbit/s; round trips in ms"
    printf '%s\n' "discipline    idle RTT   loaded RTT      p90   loaded/idle   goodput kB/s   % of framing"
    awk '{ printf "%-12s %9s %12s %8s %13s %14s %14s%s\n", $1, $2, $3, $4, $5, $6, $7, $8 ? "  " $8 : "" }' "$1"
    printf '%s\n' "Hawley 1989, Datakit, four windows of 7 x 1024, 64-octet messages (reported, not measured here):"
    printf '%-12s %9s %12s %8s %13s %14s\n' fifo 4.99 162 - 32.5 166.8 round-robin 5.0 15.7 - 3.1 173.3
    for name in fifo round-robin; do
        lost=$((PINGS_LOADED - $(times "$work/$name/loaded" | wc -l)))
        ((lost == 0)) || printf '%s\n' "$name: $lost of $PINGS_LOADED loaded pings were lost in the full queue"
    done
    printf '%s\n\n' "Idle and loaded RTT are medians; goodput is TCP payload at the receiver, of $(allowed_kB) kB/s that the framing leaves."
}

judge() { # file of rows
    awk '
        $8 { spoilt = " by INVALID figures" }
        $1 == "fifo" { fifo = $3; share["fifo"] = $7 }
        $1 == "round-robin" { rr = $3; share["round-robin"] = $7 }
        function verdict(ok) { if (!ok) failed = 1; return (ok ? "met" : "NOT met") spoilt }
        END {
            printf "Round robin holds the loaded round trip to 1/%.1f of FIFO (wanted: 1/5 or less): %s\n", fifo / rr, verdict(rr <= fifo / 5)
            least = share["fifo"] < share["round-robin"] ? share["fifo"] : share["round-robin"]
            printf "TCP goodput is at least %.1f %% of what the framing allows (wanted: 93 %%): %s\n", least, verdict(least >= 93)
            exit failed
        }' "$1"
}

# In the background and waited for, as above.
ladder() {
    local page=$root/target/demo
    "$trunkline" ladder "$root/examples/ladder/t1-fifo.toml" "$root/examples/ladder/t1-round-robin.toml" \
        --time 15s --out "$page" --force --best-effort &
    running=$!
    local failed=0
    wait "$running" || failed=1
    running=
    return "$failed"
}

[[ -x $trunkline ]] || fail "there is no $trunkline: run 'make demo', which builds it"
"$here/needs.sh" demo || exit 1
work=$(mktemp -d)

say "1/3 fifo: one queue of 32 KiB for all (Hawley 1989 §1.3)"
measure fifo
say "2/3 round-robin: a queue for each channel, 64 bytes of each in turn (Hawley 1989 §1.4)"
measure round-robin --queue round-robin:quantum=64 --limit 500KB --output-buffer 1KiB
{ row fifo; row round-robin; } >"$work/rows"
table "$work/rows"
status=0
judge "$work/rows" || status=1
say "3/3 four URP windows of 7 x 1024 and somebody who types: predicted, simulated, emulated"
ladder || status=1
exit "$status"
