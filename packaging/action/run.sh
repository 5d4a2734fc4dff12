#!/usr/bin/env bash
# What the action does, for any CI: installs TRUNKLINE_PACKAGE (a .deb or .tar.gz, a file or an https address) if it is
# named, and runs TRUNKLINE_COMMAND behind the path TRUNKLINE_OPTIONS. Leaves the statement in TRUNKLINE_REPORT. The exit
# status is the command's own, or 1 if the run was INVALID.
set -euo pipefail

package=${TRUNKLINE_PACKAGE:-}
options=${TRUNKLINE_OPTIONS:?the path is missing: options of trunkline shell, such as --delay 20ms}
command=${TRUNKLINE_COMMAND:?the command is missing}
report=${TRUNKLINE_REPORT:-trunkline.json}

as_root() {
    if ((EUID == 0)); then "$@"; else sudo "$@"; fi
}

install() {
    local file=$1 place
    place=$(mktemp -d)
    if [[ $file == https://* ]]; then
        curl --fail --silent --show-error --location --output "$place/${file##*/}" "$file"
        file=$place/${file##*/}
    fi
    case $file in
    *.deb) as_root apt-get install -y "$(realpath "$file")" ;;
    *.tar.gz) as_root tar --extract --gzip --file "$file" --directory / --strip-components 1 ;;
    *)
        echo "trunkline action: '$file' is neither a .deb nor a .tar.gz" >&2
        exit 2
        ;;
    esac
    rm -rf "$place"
}

[[ -z $package ]] || install "$package"
command -v trunkline >/dev/null || {
    echo "trunkline action: trunkline is not installed: name the package of make dist" >&2
    exit 2
}
# For the log: what the runner can do. It decides nothing.
trunkline doctor || true
# The options are words of one line, quoted as they would be typed.
mapfile -t words < <(xargs printf '%s\n' <<<"$options")
trunkline shell "${words[@]}" --quiet --pass-status --report "$report" -- bash -euo pipefail -c "$command"
