#!/usr/bin/env bash
# Builds Aeron's media driver and the samples of its C client, from the sources that a crate brings along:
# target/peers/aeron/bin. Says so and goes on if they cannot be had: the benchmark then leaves Aeron out.
set -euo pipefail
cd "$(dirname "$0")/../.."

crate=rusteron-media-driver version=0.2.16
out=target/peers/aeron
programs=(aeronmd cping cpong streaming_publisher rate_subscriber)
for program in "${programs[@]}"; do
    [[ -x $out/bin/$program ]] || missing=$program
done
[[ -z ${missing:-} ]] && exit

# Aeron wants a newer CMake than Debian 12 has: the Python Package Index's, in a place of its own.
cmake=cmake
newer_cmake() {
    cmake=$out/python/bin/cmake
    [[ -x $cmake ]] && return
    python3 -m venv "$out/python"
    "$out/python/bin/pip" install --quiet 'cmake==3.31.*'
}

build() {
    [[ $(printf '3.30\n%s\n' "$(cmake --version | grep -o '[0-9.]*$' | head -1)" | sort -V | head -1) == 3.30 ]] || newer_cmake
    # Fetches the crate, checks it against the registry's index, and unpacks it.
    cargo info --quiet --registry crates-io "$crate@$version" >/dev/null
    local sources=("${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/"$crate-$version"/aeron)
    local options=(
        -DCMAKE_BUILD_TYPE=Release -DBUILD_AERON_ARCHIVE_API=OFF -DAERON_BUILD_SAMPLES=ON -DAERON_TESTS=OFF
        -DAERON_UNIT_TESTS=OFF -DAERON_SYSTEM_TESTS=OFF -DAERON_BUILD_DOCUMENTATION=OFF -DAERON_INSTALL_TARGETS=OFF
    )
    "$cmake" -S "${sources[0]}" -B "$out/build" "${options[@]}"
    "$cmake" --build "$out/build" --target "${programs[@]}"
    mkdir -p "$out/bin"
    local program
    for program in "${programs[@]}"; do
        find "$out/build" -type f -name "$program" -perm -u+x -exec cp {} "$out/bin/" \;
    done
}

mkdir -p "$out"
if ! build >"$out/log" 2>&1; then
    echo "aeron.sh: Aeron cannot be built, and is left out: see $out/log" >&2
fi
