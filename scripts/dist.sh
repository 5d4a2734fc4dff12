#!/usr/bin/env bash
# What is handed out, in dist/: for x86_64 and aarch64 a static binary with manual pages and completions, a Debian
# package, and an OCI image; then the sizes and SHA256SUMS. scripts/dist.sh [x86_64] [aarch64]
#
# Needs rustup for the targets of musl, and for aarch64 the cross compiler and qemu-user: scripts/needs.sh dist.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
# The date of the commit, so that the same commit gives the same files.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

build() {
    local target=$1-unknown-linux-musl
    rustup target list --installed | grep -qx "$target" || rustup target add "$target"
    if [[ $1 == aarch64 ]]; then
        export CC_aarch64_unknown_linux_musl=aarch64-linux-gnu-gcc
        # The headers are glibc's; what they would replace functions by is not in musl.
        export CFLAGS_aarch64_unknown_linux_musl="-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=0"
        export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER=rust-lld
    fi
    cargo build --locked --profile dist -p trunkline --target "$target"
    install -D "target/$target/dist/trunkline" "$work/$1/usr/bin/trunkline"
}

# The command, under qemu if it is another machine's: command_of ARCH WORDS…
command_of() {
    local under=()
    [[ $1 == "$(uname -m)" ]] || under=("qemu-$1")
    "${under[@]}" "$work/$1/usr/bin/trunkline" "${@:2}"
}

beside() {
    local root=$work/$1
    mkdir -p "$root/usr/share/man/man1"
    command_of "$1" man --out "$root/usr/share/man/man1"
    gzip -9n "$root"/usr/share/man/man1/*.1
    local file shell
    for file in bash:bash-completion/completions/trunkline zsh:zsh/vendor-completions/_trunkline \
        fish:fish/vendor_completions.d/trunkline.fish; do
        shell=${file%%:*}
        mkdir -p "$root/usr/share/$(dirname "${file#*:}")"
        command_of "$1" completions "$shell" >"$root/usr/share/${file#*:}"
    done
    install -Dm644 packaging/trunkline.service "$root/lib/systemd/system/trunkline.service"
    install -Dm644 -t "$root/usr/share/doc/trunkline" README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE
    install -Dm644 -t "$root/usr/share/doc/trunkline/examples" examples/*.toml
}

archive() {
    local name=trunkline-$version-$1-linux
    cp -r "$work/$1" "$work/$name"
    tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -C "$work" -c "$name" |
        gzip -9n >"dist/$name.tar.gz"
}

package() {
    local debian=amd64
    [[ $1 == aarch64 ]] && debian=arm64
    local root=$work/$1
    mkdir -p "$root/DEBIAN"
    cat >"$root/DEBIAN/control" <<EOF
Package: trunkline
Version: $version
Architecture: $debian
Maintainer: The Trunkline authors <trunkline@localhost>
Installed-Size: $(du -sk "$root/usr" | cut -f1)
Recommends: iputils-ping
Suggests: iperf3, curl, tshark
Section: net
Priority: optional
Description: network path laboratory
 Puts an adjustable piece of network between real programs (rate, delay, queue,
 loss, in either direction), predicts it by formulas, simulates it, and says
 after every run how exactly it kept to what it was told. Needs no kernel
 module, and for most of its work no root.
EOF
    find "$root" -newermt "@$SOURCE_DATE_EPOCH" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
    dpkg-deb --root-owner-group -Zxz --build "$root" "dist/trunkline_${version}_$debian.deb" >/dev/null
}

mkdir -p dist
if [[ $# -eq 0 ]]; then set -- x86_64 aarch64; fi
for arch in "$@"; do
    build "$arch"
    beside "$arch"
    archive "$arch"
    scripts/oci.py "$work/$arch/usr/bin/trunkline" "$arch" "$version" "dist/trunkline-$version-$arch.oci.tar"
    package "$arch"
done
(cd dist && sha256sum trunkline* >SHA256SUMS)
ls -l --block-size=kB dist | awk 'NR > 1 {print $5, $9}'
