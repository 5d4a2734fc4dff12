#!/usr/bin/env bash
# Sees to it that the programs for a purpose are there: scripts/needs.sh demo|test|bench|dist|peers|clusters|torture|pages|site|code|fuzz
# As root, what is missing is installed by apt; otherwise the command to do so is printed. The demo and
# the benchmarks cannot do without; tests that need an absent program are skipped and counted, unless
# TRUNKLINE_NO_SKIP=1 forbids that.
set -euo pipefail

purpose=${1:?usage: needs.sh demo|test|bench|dist|peers|clusters|torture|pages|site|code|fuzz}
modules=()

# program=package
case $purpose in
demo) needs=(iperf3=iperf3 ping=iputils-ping jq=jq) ;;
test)
    needs=(
        iperf3=iperf3 ping=iputils-ping curl=curl dnsmasq=dnsmasq-base tcpdump=tcpdump tshark=tshark irtt=irtt
        flent=flent setpriv=util-linux unshare=util-linux su=util-linux python3=python3 nft=nftables
        iptables-legacy=iptables
    )
    # Flent plots with this, which it only recommends.
    modules=(matplotlib=python3-matplotlib)
    ;;
bench) needs=(valgrind=valgrind) ;;
# The static C library, and another machine's compiler and processor.
dist)
    needs=(
        musl-gcc=musl-tools aarch64-linux-gnu-gcc=gcc-aarch64-linux-gnu qemu-aarch64=qemu-user dpkg-deb=dpkg xz=xz-utils
        python3=python3 /usr/aarch64-linux-gnu/include/stdio.h=libc6-dev-arm64-cross
    )
    ;;
peers) needs=(python3=python3 iperf3=iperf3 rsync=rsync sshd=openssh-server ssh-keygen=openssh-client uftp=uftp
    g++=g++ /usr/include/udt/udt.h=libudt-dev) ;;
# Aeron is compiled, with two libraries of C and a newer CMake.
clusters) needs=(valgrind=valgrind nsenter=util-linux setpriv=util-linux chrt=util-linux fi_pingpong=libfabric-bin ucx_perftest=ucx-utils mpirun=openmpi-bin
    NPopenmpi=netpipe-openmpi cmake=cmake c++=g++ python3=python3-venv /usr/include/uuid/uuid.h=uuid-dev /usr/include/bsd/stdlib.h=libbsd-dev) ;;
torture) needs=(ip=iproute2 sysctl=procps ethtool=ethtool nft=nftables unshare=util-linux) ;;
pages) needs=(chromium=chromium node=nodejs npm=npm) ;;
# libFuzzer is C++ and is compiled with the targets.
fuzz) needs=(c++=g++) ;;
code | site) needs=() ;;
*)
    echo "needs.sh: unknown purpose '$purpose': use demo, test, bench, dist, peers, clusters, torture, pages, site, code or fuzz" >&2
    exit 2
    ;;
esac

PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

# A program, or a file that is named by its path.
is_there() { [[ -f $1 ]] || command -v "$1" >/dev/null; }

missing() {
    local need
    for need in "${needs[@]}"; do
        is_there "${need%%=*}" || echo "${need#*=}"
    done | sort -u
    # Flent is Debian's, and so is the Python that runs it, whatever comes first on the path.
    for need in "${modules[@]}"; do
        /usr/bin/python3 -c "import ${need%%=*}" 2>/dev/null || echo "${need#*=}"
    done
}

install() {
    export DEBIAN_FRONTEND=noninteractive
    apt-get install -y --no-install-recommends "$@" && return
    apt-get update && apt-get install -y --no-install-recommends "$@"
}

# A component that rustup left out of a minimal installation.
component() {
    cargo "$1" --version >/dev/null 2>&1 && return
    if command -v rustup >/dev/null; then
        rustup component add "$2"
    else
        echo "needs.sh: cargo $1 is missing: install it with your Rust toolchain" >&2
        exit 1
    fi
}

# A program that is not Debian's: built beside the rest of what is built here, and not optimised: it runs for a second,
# and would take three times as long to build.
tool() {
    local root=$PWD/target/tools
    [[ -x $root/bin/$1 ]] || CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0 \
        cargo install "$1" --version "$2" --locked --profile dev --root "$root" "${@:3}"
}

case $purpose in
code)
    component fmt rustfmt
    component clippy clippy
    exit
    ;;
site)
    tool mdbook 0.5.4 --no-default-features --features search
    exit
    ;;
esac

mapfile -t packages < <(missing)
((${#packages[@]} == 0)) && exit

if ((EUID == 0)) && command -v apt-get >/dev/null; then
    echo "needs.sh: installing ${packages[*]}" >&2
    install "${packages[@]}" >&2 || echo "needs.sh: apt could not install ${packages[*]}" >&2
    mapfile -t packages < <(missing)
    ((${#packages[@]} == 0)) && exit
else
    echo "needs.sh: not here: ${packages[*]}; install with: sudo apt-get install ${packages[*]}" >&2
fi

# Tests go on without, and are counted as skipped.
[[ $purpose == test && ${TRUNKLINE_NO_SKIP:-0} == 0 ]]
