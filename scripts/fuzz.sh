#!/usr/bin/env bash
# Searches every decoder for inputs that it does not stand, with libFuzzer on the stable toolchain.
#   scripts/fuzz.sh [SECONDS] [TARGET...]     each target for so long (30), one at a time, in one process
#   scripts/fuzz.sh --keep [TARGET...]        takes the smallest finds of earlier runs into fuzz/corpus
#   scripts/fuzz.sh --replay TARGET FILE      one input once more
# A run starts from fuzz/corpus/TARGET, which is committed, and from what earlier runs found here
# (fuzz/target/finds/TARGET, which is not). Exit status 1: a crash; its input is named.
set -euo pipefail
cd "$(dirname "$0")/.."

# Inputs and bytes that --keep adds for a target at most, and the longest input that is tried.
most_inputs=16
most_kept=8192
longest=4096
# Memory of a target in MiB, and seconds that one input may take.
memory=2048
patience=20

triple=$(rustc -vV | sed -n 's/^host: //p')
program=${CARGO_TARGET_DIR:-fuzz/target}/$triple/release/any
finds=fuzz/target/finds
crashes=fuzz/artifacts

build() {
    scripts/needs.sh fuzz
    # The instrumentation is the stable compiler's own; only its flags are called unstable.
    local flags=(
        -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
        -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
        -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing
    )
    # With a target named, the flags are for the program alone, not for what builds it.
    RUSTC_BOOTSTRAP=1 RUSTFLAGS="${flags[*]}" cargo build --quiet --release --locked \
        --manifest-path fuzz/Cargo.toml --target "$triple" --bin any
}

known() {
    sed -n 's/^    ("\([a-z-]*\)", .*),$/\1/p' fuzz/src/lib.rs
}

# The targets asked for, or all.
targets() {
    (($# == 0)) && { known; return; }
    local name
    for name in "$@"; do
        known | grep -qx -- "$name" && echo "$name" && continue
        echo "fuzz.sh: there is no target '$name'; use one of: $(known | tr '\n' ' ')" >&2
        return 2
    done
}

run() { # TARGET ARGUMENT...
    TRUNKLINE_FUZZ_TARGET=$1 "$program" -rss_limit_mb=$memory -timeout=$patience "${@:2}"
}

# The last number after a word of libFuzzer's log.
number() { # WORD LOG
    grep -ao "$1 *[0-9]*" "$2" | tail -1 | grep -o '[0-9]*$' || echo 0
}

# One line of the table. Fails if the target crashed.
search() { # SECONDS TARGET
    local target=$2 log=fuzz/target/$2.log status=0
    mkdir -p "fuzz/corpus/$target" "$finds/$target" "$crashes/$target"
    run "$target" -max_total_time="$1" -max_len=$longest -print_final_stats=1 \
        -artifact_prefix="$crashes/$target/" "$finds/$target" "fuzz/corpus/$target" >"$log" 2>&1 || status=$?
    local executions speed edges
    executions=$(number stat::number_of_executed_units: "$log")
    speed=$(number stat::average_exec_per_sec: "$log")
    edges=$(number cov: "$log")
    printf '%-12s %12s %10s %8s %8s\n' "$target" "$executions" "$speed" "$edges" $((status != 0))
    ((status == 0)) && return
    local input
    input=$(sed -n 's/^.*Test unit written to //p' "$log" | tail -1)
    echo "fuzz.sh: $target fails; see $log. Once more: scripts/fuzz.sh --replay $target ${input:-'(no input was written)'}" >&2
    return 1
}

# Adds the smallest of the finds that reach what the corpus does not.
keep() { # TARGET
    local new file size sum=0 count=0
    new=$(mktemp -d)
    mkdir -p "fuzz/corpus/$1" "$finds/$1"
    cp -r "fuzz/corpus/$1/." "$new"
    run "$1" -set_cover_merge=1 "$new" "$finds/$1" >"fuzz/target/$1.log" 2>&1
    while read -r size file; do
        [[ -e fuzz/corpus/$1/${file##*/} ]] && continue
        ((count < most_inputs && sum + size <= most_kept)) || break
        cp "$file" "fuzz/corpus/$1/"
        sum=$((sum + size)) count=$((count + 1))
    done < <(find "$new" -type f -printf '%s %p\n' | sort -n)
    rm -r "$new"
    echo "$1: $count inputs, $sum bytes"
}

case ${1:-} in
--replay)
    build
    run "${2:?which target?}" "${3:?which file?}"
    ;;
--keep)
    build
    list=$(targets "${@:2}")
    for target in $list; do keep "$target"; done
    ;;
*)
    seconds=${1:-30}
    [[ $seconds =~ ^[1-9][0-9]*$ ]] || { echo "fuzz.sh: '$seconds' is no number of seconds; see the head of scripts/fuzz.sh" >&2; exit 2; }
    list=$(targets "${@:2}")
    build
    failed=0
    printf '%-12s %12s %10s %8s %8s\n' target executions each-sec edges crashes
    for target in $list; do search "$seconds" "$target" || failed=1; done
    exit $failed
    ;;
esac
