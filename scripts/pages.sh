#!/usr/bin/env bash
# Makes nine reports and looks at their pages in Chromium, at 1280 and 390 px, light, dark and in grey:
# scripts/pages.sh [DIR]. Pictures are left in DIR/shots (out/pages unless named). Fails if a page is wider than its
# window or axe finds a fault of accessibility, folded parts included.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(realpath -m "${1:-out/pages}")
trunkline=${TRUNKLINE:-target/release/trunkline}
mkdir -p "$out"

pages=()
for example in bufferbloat two-hops windows token-ring leaf-spine netblt cluster; do
    "$trunkline" run "examples/$example.toml" --engine model,sim --out "$out/$example" --force >"$out/$example.txt"
    pages+=("$example=$out/$example/index.html")
done
for study in vandewater1988 hawley1989; do
    "$trunkline" study run "$study" --out "$out" --force >"$out/$study.txt"
    pages+=("$study=$out/$study/index.html")
done

npm --prefix tools/pages ci --no-audit --no-fund --silent
CHROMIUM=$(command -v chromium) node tools/pages/look.mjs "$out/shots" "${pages[@]}"
