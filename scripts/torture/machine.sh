#!/usr/bin/env bash
# What the command leaves on a machine: runs of every verb are killed, interrupted, ended, stopped and continued at random moments,
# given too little memory, too few files, a full disk, and streams that nobody reads. Before and after, every setting
# below /proc/sys/net, device, address, route, rule, table of nf_tables, offload, process and file is compared.
# The "machine" is a network, process and mount namespace with two neighbours, so that nothing of the real one is
# touched. Needs root. MOMENTS=60 kills for each verb; SEED=1 decides the moments; PROFILE=dev takes the development build.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/../.."
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

if [[ -z ${INSIDE:-} ]]; then
    ((EUID == 0)) || { echo "torture: namespaces of processes and mounts need root" >&2; exit 1; }
    scripts/needs.sh torture
    profile=${PROFILE:-release}
    cargo build --locked --profile "$profile" -p trunkline
    built=${CARGO_TARGET_DIR:-target}/$([[ $profile == dev ]] && echo debug || echo "$profile")
    export TRUNKLINE=${TRUNKLINE:-$(realpath "$built/trunkline")} INSIDE=1
    exec unshare --net --mount --pid --fork --mount-proc --propagation private "$0" "$@"
fi

MOMENTS=${MOMENTS:-60}
RANDOM=${SEED:-1}
# How long a verb may take to end in order.
GRACE=15
examples=$PWD/examples
tried=0
survived=0

# --- the machine -----------------------------------------------------------------------------------------

build_machine() {
    mount -t sysfs sysfs /sys
    mount -t tmpfs -o size=256m tmpfs /run
    mkdir -p /run/home/results /run/tmp
    export TMPDIR=/run/tmp
    cd /run/home
    ip link set lo up
    local side
    for side in 1 2; do
        ip link add tlt$side type veth peer name tltn$side
        unshare --net sleep infinity &
        neighbours[side]=$!
        until [[ $(readlink /proc/$!/exe) == */sleep ]]; do sleep 0.01; done
        ip link set tltn$side netns $!
        ip addr add 192.0.$side.1/24 dev tlt$side
        ip link set tlt$side up
        nsenter --net=/proc/$!/ns/net ip addr add 192.0.$side.2/24 dev tltn$side
        nsenter --net=/proc/$!/ns/net ip link set tltn$side up
    done
    ip route add default via 192.0.1.2
    # Whatever is decided later, as addresses of IPv6 are, is not the doing of what is tried.
    sleep 3
}

# Everything that somebody could find changed.
machine() (
    set +eo pipefail
    sysctl -a 2>/dev/null | grep '^net\.' | grep -v -e nf_conntrack_count -e 'netfilter.nf_log'
    ip -d link | sed 's/ numtxqueues.*//'
    ip addr | sed 's/valid_lft.*//'
    ip route show table all
    ip -6 route show table all | sed 's/ expires [0-9]*sec//'
    ip rule
    ip -6 rule
    nft list ruleset
    local device
    for device in tlt1 tlt2; do ethtool -k $device; done
    ps -eo args= | grep -v -e '^ps ' -e '^grep' -e '^sed' -e '^sort' -e '^bash' -e '^sleep infinity' -e machine.sh | sort
    find /run -not -name lock -not -name 'testbed.lock' -not -name 'testbed.next' -not -path /run/trunkline -not -path '/run/seen*' -not -path '/run/mount*' | sort
)

remember() { machine >/run/seen.before 2>&1; }

# The start of any laboratory sweeps what killed ones left.
sweep() { "$TRUNKLINE" shell --no-outside --best-effort -- true >/dev/null 2>&1 || true; }

# Tells what differs; nothing differs on a machine that is as it was.
compare() {
    machine >/run/seen.after 2>&1
    diff /run/seen.before /run/seen.after >/run/seen.diff && return
    echo "torture: after $1 the machine is not as it was:" >&2
    head -n 20 /run/seen.diff >&2
    # What comes after is held against what it found.
    mv /run/seen.after /run/seen.before
    return 1
}

# --- counting --------------------------------------------------------------------------------------------

# count NAME TRIED SURVIVED [REMARK]
count() {
    printf '%-46s tried %4d, survived %4d%s\n' "$1" "$2" "$3" "${4:-}"
    tried=$((tried + $2))
    survived=$((survived + $3))
}

# A status that says that the program lost control of itself: a panic, an abort, a fault.
is_wreck() { [[ $1 == 101 || $1 == 134 || $1 == 139 || $1 == 135 ]]; }

# --- kills -----------------------------------------------------------------------------------------------

# The verbs: name, longest moment in milliseconds, words. What has to run beforehand is started by `helped`.
verbs=(
    "shell 500 shell --best-effort -- sleep 5"
    "bridge 400 bridge tlt1 tlt2 --best-effort --duration 5s"
    "verify 900 verify --delay 1ms --sizes 64 --loads 100 --duration 3s"
    "calibrate 900 calibrate"
    "run-sim 300 run $examples/t1-trunk.toml --engine model,sim --out results/sim --force"
    "run-emu 900 run $examples/two-hops.toml --engine emu --out results/emu --force"
    "predict 30 predict $examples/two-hops.toml"
    "explain 300 explain $examples/two-hops.toml"
    "ladder 600 ladder $examples --engine model,sim --out results/ladder --force"
    "study 400 study run hawley1989 --engine model,sim --out results/study --force"
    "serve 200 serve --bind 127.0.0.1"
    "probe 300 probe rtt 127.0.0.1 --port 7001 --count 50 --csv results/probe.csv"
    "show 60 show --watch --interval 50ms"
    "set 60 set delay=3ms"
    "presets 15 presets"
    "cluster 900 cluster run --nodes 3 --test latency:rounds=100000"
    "cluster-here 500 cluster run --nodes 3 --here --test latency:rounds=100000"
    "receive 600 receive results/inbox --port 7003 --bind 127.0.0.1"
    "send 600 send --no-key --rate 2mbit results/data 127.0.0.1:7004"
    "load 600 probe load 127.0.0.1 --port 7001 --duration 5s"
)

# Starts what the verb needs: a server for probe, a receiver for send, a path for show and set.
help_verb() {
    case $1 in
    send)
        head -c 20000000 /dev/urandom >results/data
        "$TRUNKLINE" receive results/inbox --no-key --port 7004 --bind 127.0.0.1 >/dev/null 2>&1 &
        ;;
    probe | load) "$TRUNKLINE" serve --bind 127.0.0.1 --port 7001 >/dev/null 2>&1 & ;;
    show | set) "$TRUNKLINE" shell --no-outside --best-effort -- sleep 1000 >/dev/null 2>&1 & ;;
    *) return ;;
    esac
    helper=$!
    sleep 1
}

unhelp_verb() {
    [[ -n $helper ]] || return 0
    kill "$helper" 2>/dev/null || true
    wait "$helper" 2>/dev/null || true
    helper=
}

# Waits for the process, GRACE seconds at most.
ended() {
    local left=$((GRACE * 50))
    while kill -0 "$1" 2>/dev/null && ((left-- > 0)); do sleep 0.02; done
    ! kill -0 "$1" 2>/dev/null
}

# What the process with this number left that it should not have: a record, a socket, a hidden directory.
left_by() { find /run/trunkline results \( -name "$1.*" -o -name ".trunkline-$1-*" \) 2>/dev/null; }

# one NAME LONGEST SIGNAL WORDS...: one kill at a random moment. Prints nothing if it was survived.
one() {
    local name=$1 longest=$2 how=$3 pid status held=0
    shift 3
    # As from a terminal: what bash starts beside a script ignores interrupts.
    env --default-signal=INT "$TRUNKLINE" "$@" >/dev/null 2>&1 &
    pid=$!
    sleep "0.$(printf '%03d' $((RANDOM % longest)))"
    ! kill -0 $pid 2>/dev/null || met=$((met + 1))
    case $how in
    KILL) kill -KILL $pid 2>/dev/null || true ;;
    TERM | INT) kill -$how $pid 2>/dev/null && held=1 || held=0 ;;
    STOP)
        kill -STOP $pid 2>/dev/null || true
        sleep 0.05
        kill -CONT $pid 2>/dev/null || true
        kill -TERM $pid 2>/dev/null || true
        ;;
    esac
    if ! ended $pid; then
        kill -KILL $pid
        echo "torture: $name still runs $GRACE s after SIG$how" >&2
        return 1
    fi
    status=0
    wait $pid 2>/dev/null || status=$?
    if is_wreck $status; then
        echo "torture: $name ended with $status after SIG$how" >&2
        return 1
    fi
    # It may have come to its own end at that moment, well or not.
    if ((held)) && [[ $status != 0 && $status != 1 && $status != $((128 + $(kill -l $how))) ]]; then
        echo "torture: $name ended with $status after SIG$how, not with $((128 + $(kill -l $how)))" >&2
        return 1
    fi
    if [[ $how != KILL && -n $(left_by $pid) ]]; then
        echo "torture: $name left $(left_by $pid | tr '\n' ' ')after SIG$how" >&2
        return 1
    fi
}

kill_verb() {
    local name=$1 longest=$2 good=0 index
    shift 2
    local signals=(KILL INT TERM STOP)
    met=0
    help_verb "$name"
    for ((index = 0; index < MOMENTS; index++)); do
        ! one "$name" "$longest" "${signals[index % 4]}" "$@" || good=$((good + 1))
    done
    unhelp_verb
    # Runs to the same place, and laboratories, remove what killed ones left there.
    case $name in run-sim | run-emu | ladder | study) resume_to "$@" || good=0 ;; esac
    sweep
    rm -rf results
    mkdir results
    compare "$name" || good=0
    count "$name, killed at random moments" "$MOMENTS" $good " ($met still ran)"
}

# Lets a run to the same place begin and end in order; what killed ones left beside it has to be gone.
resume_to() {
    timeout --signal=TERM 2 "$TRUNKLINE" "$@" >/dev/null 2>&1 || true
    local left
    left=$(find results -name '.trunkline-[0-9]*')
    [[ -z $left ]] || echo "torture: left beside the results: $left" >&2
    [[ -z $left ]] || return 1
}

kills() {
    local verb
    for verb in "${verbs[@]}"; do
        # Words of verbs hold no spaces.
        # shellcheck disable=SC2086
        kill_verb $verb
    done
}

# --- too little of everything ----------------------------------------------------------------------------

# limited NAME LIMIT VALUES... : a laboratory and a simulation under each of these limits.
limited() {
    local name=$1 limit=$2 good=0 all=0 value verb status
    shift 2
    for value in "$@"; do
        for verb in "shell --best-effort -- true" "run $examples/two-hops.toml --engine sim"; do
            all=$((all + 1))
            status=0
            # shellcheck disable=SC2086
            (ulimit "$limit" "$value" && exec "$TRUNKLINE" $verb) >/dev/null 2>&1 || status=$?
            sweep
            if [[ $status == 101 || $status == 139 ]]; then
                echo "torture: $verb ended with $status under ulimit $limit $value" >&2
            elif compare "$verb under ulimit $limit $value"; then
                good=$((good + 1))
            fi
        done
    done
    count "$name" $all $good
}

full_disks() {
    local good=0 all=0 what size status
    mkdir -p /run/full
    for size in 4k 16k 64k 256k; do
        for what in results run; do
            all=$((all + 1))
            status=0
            if [[ $what == results ]]; then
                mount -t tmpfs -o size=$size tmpfs /run/full
                head -c 1000000 /dev/zero >/run/full/filler 2>/dev/null || true
                "$TRUNKLINE" run "$examples/two-hops.toml" --engine sim --out /run/full/results >/dev/null 2>&1 || status=$?
                [[ $status == 1 && ! -e /run/full/results && -z $(find /run/full -name '.trunkline-[0-9]*') ]] || status=200
                umount /run/full
            else
                mkdir -p /run/trunkline
                mount -t tmpfs -o size=$size,mode=700 tmpfs /run/trunkline
                head -c 1000000 /dev/zero >/run/trunkline/filler 2>/dev/null || true
                "$TRUNKLINE" shell --best-effort -- true >/dev/null 2>&1 || status=$?
                [[ -z $(find /run/trunkline -name '[0-9]*') ]] || status=200
                umount /run/trunkline
            fi
            sweep
            if is_wreck $status || ((status == 200)); then
                echo "torture: a full disk of $size for $what: status $status" >&2
            elif rmdir /run/full && compare "a full disk of $size for $what"; then
                good=$((good + 1))
            fi
            mkdir -p /run/full
        done
    done
    rmdir /run/full
    count "full disks" $all $good
}

closed_pipes() {
    local good=0 all=0 verb stream status
    for verb in "presets" "--help" "predict $examples/two-hops.toml" "run $examples/two-hops.toml --engine sim --json" \
        "shell --best-effort -- true" "shell --best-effort --json -- true" "bridge tlt1 tlt2 --best-effort --duration 200ms" \
        "run /nonexistent.toml" "show"; do
        for stream in both out err full fullerr; do
            all=$((all + 1))
            status=0
            # shellcheck disable=SC2086
            case $stream in
            both) { "$TRUNKLINE" $verb 2>&1 || echo $? >/run/seen.status; } | true ;;
            out) { "$TRUNKLINE" $verb 2>/dev/null || echo $? >/run/seen.status; } | true ;;
            err) { "$TRUNKLINE" $verb 2>&1 >/dev/null || echo $? >/run/seen.status; } | true ;;
            full) "$TRUNKLINE" $verb >/dev/full 2>/dev/null || echo $? >/run/seen.status ;;
            fullerr) "$TRUNKLINE" $verb 2>/dev/full >/dev/null || echo $? >/run/seen.status ;;
            esac
            [[ ! -e /run/seen.status ]] || status=$(cat /run/seen.status)
            rm -f /run/seen.status
            case $status in
            0 | 1 | 2 | 141) good=$((good + 1)) ;;
            *) echo "torture: $verb with $stream closed or full ended with $status" >&2 ;;
            esac
        done
    done
    compare "streams that nobody reads" || good=0
    count "streams closed or full" $all $good
}

# --- all of it -------------------------------------------------------------------------------------------

# The shell tells of each process that was killed.
exec 2> >(grep -v --line-buffered -e ' Killed  ' -e ' Aborted  ' >&2)
neighbours=()
helper=
build_machine
sweep
remember
if (($# == 0)); then set -- kills memory files disks pipes; fi
for what in "$@"; do
    case $what in
    kills) kills ;;
    memory) limited "too little memory (ulimit -v)" -v 30000 60000 100000 200000 400000 800000 ;;
    files) limited "too few files (ulimit -n)" -n 4 8 12 16 24 32 48 64 ;;
    disks) full_disks ;;
    pipes) closed_pipes ;;
    *) echo "torture: no part '$what': kills, memory, files, disks or pipes" >&2; exit 2 ;;
    esac
done
echo "attacks tried: $tried, survived: $survived"
((tried == survived))
