#!/usr/bin/env bash
# Holds a crate's tests against mutants: scripts/mutants.sh CRATE N SEED [OPTION...]
# Draws N of the crate's mutants by chance, builds each, runs the crate's tests, and tells which mutants no test
# caught. The same tree, N and SEED draw the same mutants. Options go to cargo-mutants; `--test-package P`
# adds the tests of another crate. It works in a copy of the tree, target/mutants; needs cargo-mutants
# (cargo install cargo-mutants --locked).
set -euo pipefail
export LC_ALL=C

usage="usage: scripts/mutants.sh CRATE N SEED [OPTION of cargo-mutants...], such as: scripts/mutants.sh dataplane 60 1"
crate=${1:?$usage}
count=${2:?$usage}
seed=${3:?$usage}
shift 3

cd "$(dirname "$0")/.."
root=$PWD
tree=$root/target/mutants/tree
results=$root/target/mutants/$crate-$seed

# The trunkline command lives in crates/cli.
package=trunkline-$crate
[[ $crate == cli ]] && package=trunkline

cargo mutants --version >/dev/null 2>&1 || {
    echo "mutants.sh: cargo-mutants is missing: cargo install cargo-mutants --locked" >&2
    exit 1
}
[[ -d crates/$crate ]] || {
    echo "mutants.sh: no crate crates/$crate" >&2
    exit 2
}

# Brings the copy up to date. Only what differs is written, with the present as its time: cargo goes by times,
# and must see that a file is no longer the mutant that it built last.
copy() {
    local wanted file
    wanted=$(mktemp)
    git ls-files -z --cached --others --exclude-standard | sort -z >"$wanted"
    mkdir -p "$tree"
    while IFS= read -r -d '' file; do
        [[ -f $file ]] || continue
        cmp -s "$file" "$tree/$file" && continue
        mkdir -p "$tree/$(dirname "$file")"
        cp "$file" "$tree/$file"
    done <"$wanted"
    (cd "$tree" && find . -type f -printf '%P\0' | sort -z | comm -z -13 "$wanted" - | xargs -0r rm -f)
    rm -f "$wanted"
}

# One line for each mutant drawn: those whose names, hashed with the seed, come first.
draw() {
    cargo mutants --list --dir "$tree" --package "$package" | while IFS= read -r name; do
        printf '%s %s\n' "$(printf '%s\n%s' "$seed" "$name" | sha256sum | cut -c 1-16)" "$name"
    done | sort | awk -v count="$count" 'NR <= count' | cut -d " " -f 2-
}

tally() { # of caught|timeout|missed|unviable
    local list=$results/mutants.out/$1.txt
    [[ -f $list ]] && wc -l <"$list" || echo 0
}

copy
mkdir -p "$results"
draw >"$results/drawn.txt"
chosen=()
while IFS= read -r name; do
    chosen+=(--re "^$(sed 's/[][\\.*^$(){}?+|]/\\&/g' <<<"$name")\$")
done <"$results/drawn.txt"
((${#chosen[@]})) || {
    echo "mutants.sh: $crate has no mutants" >&2
    exit 1
}

# A test that passes over what it cannot do catches nothing: here it fails, and with it the run without a mutant.
# That a property fails is enough: the smallest case that breaks it is not looked for.
status=0
CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target} TRUNKLINE_NO_SKIP=1 PROPTEST_MAX_SHRINK_ITERS=0 \
    cargo mutants --dir "$tree" --in-place --package "$package" --output "$results" --no-shuffle \
    --colors never "${chosen[@]}" "$@" || status=$?
# 2: mutants were missed; 3: some ran into the time-out. Both are results.
((status == 0 || status == 2 || status == 3)) || exit "$status"

caught=$(($(tally caught) + $(tally timeout)))
missed=$(tally missed)
echo
echo "$crate, seed $seed: caught $caught of $((caught + missed)) ($(tally timeout) by the time-out)," \
    "$(tally unviable) do not build; lists in ${results#"$root/"}/mutants.out"
[[ ! -s $results/mutants.out/missed.txt ]] || sed 's/^/missed: /' "$results/mutants.out/missed.txt"
