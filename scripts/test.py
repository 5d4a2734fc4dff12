#!/usr/bin/env python3
"""Runs the tests: scripts/test.py OPTION..., such as --workspace or -p trunkline-path (options of cargo test)

cargo builds the test programs, as it does for cargo test. Programs that judge what was measured in real time then have
the machine to themselves; of all others, a few run at the same time.

At the end it tells how many tests were skipped, and why. With TRUNKLINE_NO_SKIP=1 a test that would be skipped fails.
The status is 0 if all passed, 1 if a test failed, and cargo's if the tests could not be built.
"""
import collections
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

# Programs that judge what was measured: the end-to-end tests, and the emulator's `live`.
ALONE = ["e2e", "live"]
# How many of the others run at the same time. Some of them only wait.
AT_A_TIME = 3
# How many tests of a program begin at the same time, if not as many as there are processors. The end-to-end tests take
# turns by themselves (crates/cli/tests/e2e/turn.rs); who waits to be alone must not keep the others from beginning.
THREADS = {"e2e": "64"}

Program = collections.namedtuple("Program", "name title command folder")


def build(options):
    """The test programs, built, and the packages that have a library."""
    command = ["cargo", "test", "--locked", "--no-run", "--message-format=json-render-diagnostics", *options]
    built = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if built.returncode:
        sys.exit(built.returncode)
    programs, libraries = [], []
    for line in filter(lambda line: line.startswith("{"), built.stdout.splitlines()):
        made = json.loads(line)
        if made["reason"] != "compiler-artifact" or not made["profile"]["test"] or not made["executable"]:
            continue
        folder, name = os.path.dirname(made["manifest_path"]), made["target"]["name"]
        programs.append(Program(name, f"{os.path.relpath(folder)} {name}", [made["executable"]], folder))
        if "lib" in made["target"]["kind"]:
            libraries.append(made["package_id"])
    return programs, libraries


def examples(libraries):
    """The examples in the documentation of these packages, as one program."""
    packages = [word for library in libraries for word in ("--package", library)]
    command = ["cargo", "test", "--locked", "--doc", *packages]
    return [Program("doc", "examples of the documentation", command, os.getcwd())] if libraries else []


def run(program, said=None):
    """Runs a program. What it says goes where this program's goes, or to a file. True if its tests passed."""
    threads = {"RUST_TEST_THREADS": THREADS[program.name]} if program.name in THREADS else {}
    errors = subprocess.STDOUT if said else None
    return subprocess.run(program.command, cwd=program.folder, env={**threads, **os.environ}, stdin=subprocess.DEVNULL,
                          stdout=said, stderr=errors).returncode == 0


def run_beside(program):
    """The same beside others; gives what the program said as well."""
    with tempfile.TemporaryFile() as said:
        passed = run(program, said)
        said.seek(0)
        return program, passed, said.read()


def heading(program):
    print(f"     Running {program.title}", flush=True)


def run_all(programs):
    """Runs these programs and gives those that failed."""
    failed = []
    alone = sorted((it for it in programs if it.name in ALONE), key=lambda it: ALONE.index(it.name))
    for program in alone:
        heading(program)
        failed += [] if run(program) else [program]
    with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        others = [pool.submit(run_beside, it) for it in programs if it.name not in ALONE]
        for other in concurrent.futures.as_completed(others):
            program, passed, said = other.result()
            heading(program)
            sys.stdout.buffer.write(said)
            sys.stdout.flush()
            failed += [] if passed else [program]
    return failed


def tell_skipped(notes):
    """How many tests were skipped, and why: each note is a reason, a tab, and a test."""
    reasons = collections.Counter(line.split("\t")[0] for line in notes.read().decode().splitlines())
    print(f"{sum(reasons.values())} skipped")
    for reason, times in reasons.most_common():
        print(f"  {times} x {reason}")


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    programs, libraries = build(sys.argv[1:])
    with tempfile.NamedTemporaryFile(prefix="trunkline-skips.") as notes:
        # Some tests become other users.
        os.chmod(notes.name, 0o666)
        os.environ["TRUNKLINE_SKIP_LOG"] = notes.name
        failed = run_all(programs + examples(libraries))
        tell_skipped(notes)
    for program in failed:
        print(f"failed: {program.title}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
