#!/usr/bin/env python3
"""Holds the crates that Trunkline is built from to deny.toml: licences, versions, sources.

The file is cargo-deny's, and `cargo deny check` reads it too. But a fresh machine builds that program from nothing, for
nearly three minutes of a processor, and all that is asked here cargo tells by itself. Each breach is a line. The status
is 0 if there is none, 1 if there is one, and 2 if deny.toml has something that this program does not heed.
"""
import collections
import json
import os
import re
import subprocess
import sys
import tomllib

CRATES_IO = "registry+https://github.com/rust-lang/crates.io-index"
# What is heeded; a value beside a key is the only one that is.
KNOWN = {
    "graph": {"targets": None, "all-features": False},
    "licenses": {"allow": None},
    "bans": {"multiple-versions": "deny", "wildcards": "deny", "allow-wildcard-paths": True, "skip": None},
    "sources": {"unknown-registry": "deny", "unknown-git": "deny"},
}

Crate = collections.namedtuple("Crate", "name version licence")


def misunderstood(rules):
    """Keys and values of the file that are not heeded."""
    for table, keys in rules.items():
        for key, value in keys.items():
            known = KNOWN.get(table, {})
            if key not in known or known[key] is not None and value != known[key]:
                yield f"[{table}] {key} = {value!r}"


def crates(targets, kinds):
    """Name, version and licence of all crates that are built for one of the targets by such dependencies."""
    command = ["cargo", "tree", "--locked", "--workspace", "--edges", kinds, "--prefix", "none"]
    found = set()
    for target in targets:
        told = said([*command, "--format", "{p}\t{l}\t", "--target", target])
        lines = [line.split("\t") for line in told.splitlines() if line]
        found |= {(*crate.split()[:2], licence) for crate, licence, _ in lines}
    return [Crate(name, version.removeprefix("v"), licence) for name, version, licence in sorted(found)]


def said(command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout


def is_allowed(expression, allowed):
    """Whether the licences of an SPDX expression may be chosen so that all are allowed; the old `MIT/Apache-2.0` is one."""
    words = re.findall(r"[()]|[^\s()]+", expression.replace("/", " OR "))

    def one():
        word = words.pop(0)
        if word == "(":
            is_fine = either()
            words.pop(0)
            return is_fine
        if words[:1] == ["WITH"]:
            word = " ".join([word, words.pop(0), words.pop(0)])
        return word in allowed

    def both():
        is_fine = one()
        while words[:1] == ["AND"]:
            words.pop(0)
            is_fine &= one()
        return is_fine

    def either():
        is_fine = both()
        while words[:1] == ["OR"]:
            words.pop(0)
            is_fine |= both()
        return is_fine

    return either()


def licences(found, allowed):
    for crate in found:
        if not crate.licence:
            yield f"{crate.name} {crate.version} does not name its licence"
        elif not is_allowed(crate.licence, allowed):
            yield f"{crate.name} {crate.version} is under {crate.licence}"


def versions(found, skipped):
    """Crates of which there are several versions, but for those that are named, and names that are no longer needed."""
    several = collections.defaultdict(list)
    for crate in found:
        several[crate.name].append(crate.version)
    for skip in skipped:
        name, wanted = skip["crate"].split("@")
        older = [it for it in several[name] if f"{it}.".startswith(f"{wanted}.")]
        if older in ([], several[name]):
            yield f"{skip['crate']} is skipped, and is not one of several versions"
        several[name] = [it for it in several[name] if it not in older]
    for name, of in several.items():
        if len(of) > 1:
            yield f"{name} has the versions {', '.join(of)}"


def wildcards():
    for crate in json.loads(said(["cargo", "metadata", "--locked", "--format-version", "1", "--no-deps"]))["packages"]:
        for use in crate["dependencies"]:
            if use["req"] == "*" and "path" not in use:
                yield f"{crate['name']} takes any version of {use['name']}"


def sources():
    with open("Cargo.lock", "rb") as file:
        for crate in tomllib.load(file)["package"]:
            if crate.get("source", CRATES_IO) != CRATES_IO:
                yield f"{crate['name']} {crate['version']} comes from {crate['source']}"


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    with open("deny.toml", "rb") as file:
        rules = tomllib.load(file)
    unknown = list(misunderstood(rules))
    if unknown:
        print(f"licences.py: deny.toml has what is not understood here: {', '.join(unknown)}", file=sys.stderr)
        return 2
    targets = rules["graph"]["targets"]
    found = crates(targets, "normal,build,dev")
    breaches = [*licences(found, rules["licenses"]["allow"]), *wildcards(), *sources()]
    # What tests alone take may come in another version.
    breaches += versions(crates(targets, "normal,build"), rules["bans"].get("skip", []))
    for breach in breaches:
        print(f"licences.py: {breach}", file=sys.stderr)
    print(f"{len(found)} crates, {len(breaches)} breaches of deny.toml")
    return 1 if breaches else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        # What cargo says stands above.
        sys.exit(error.returncode)
