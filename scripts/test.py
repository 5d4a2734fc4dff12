#!/usr/bin/env python3
"""Runs the tests: scripts/test.py OPTION..., such as --workspace or -p trunkline-path (options of cargo test)

cargo builds the test programs, as it does for cargo test. A few of them run at the same time, each once it is built,
while cargo goes on with the rest. Programs that judge what was measured in real time come at the end, one after another,
and have the machine to themselves.

At the end it tells how many tests were skipped, and why. With TRUNKLINE_NO_SKIP=1 a test that would be skipped fails.
The status is 0 if all passed, 1 if a test failed, and cargo's if the tests could not be built.
"""
import atexit
import collections
import concurrent.futures
import contextlib
import fcntl
import json
import os
import subprocess
import sys
import tempfile
import threading

# Programs that judge what was measured: the end-to-end tests, and the emulator's `live`.
ALONE = ["e2e", "live"]
# Begins beside the last of the others: its tests that judge nothing go first, the rest wait (turn.rs).
WAITS = "e2e"
# How many of the others run at the same time. Some of them only wait.
AT_A_TIME = 3
# How many tests of a program begin at the same time, if not as many as there are processors. The end-to-end tests take
# turns by themselves (crates/cli/tests/e2e/turn.rs); who waits to be alone must not keep the others from beginning.
# The probe's tests wait for an answer, or for the lack of one, most of their time.
THREADS = {"e2e": "64", "loopback": "6"}
# Options of cargo test that choose targets.
TARGETS = ["--lib", "--bin", "--bins", "--test", "--tests", "--example", "--examples", "--bench", "--all-targets"]

Program = collections.namedtuple("Program", "name title command folder")


def stand_back():
    """What is built gives way to tests at once: they have bounds of time, though wide ones."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def built(options, targets, libraries):
    """The test programs, each as soon as cargo has built it. Packages that have a library are added to `libraries`."""
    command = ["cargo", "test", "--locked", "--no-run", "--message-format=json-render-diagnostics"]
    command += [*targets, *options]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                          preexec_fn=stand_back) as cargo:
        for line in filter(lambda line: line.startswith("{"), cargo.stdout):
            made = json.loads(line)
            if made["reason"] != "compiler-artifact" or not made["profile"]["test"] or not made["executable"]:
                continue
            folder, name = os.path.dirname(made["manifest_path"]), made["target"]["name"]
            if "lib" in made["target"]["kind"]:
                libraries.append(name)
            yield Program(name, f"{os.path.relpath(folder)} {name}", [made["executable"]], folder)
    if cargo.returncode:
        raise NotBuilt(cargo.returncode)


class NotBuilt(Exception):
    """The tests could not be built: cargo's status."""


def examples(options):
    """The examples in the documentation of all libraries among the packages, as one program: of fewer packages than are
    tested cargo would build their dependencies again, with other features."""
    command = ["cargo", "test", "--locked", "--doc", *options]
    return Program("doc", "examples of the documentation", command, os.getcwd())


def run(program, said=None):
    """Runs a program. What it says goes where this program's goes, or to a file. True if its tests passed."""
    threads = {"RUST_TEST_THREADS": THREADS[program.name]} if program.name in THREADS else {}
    errors = subprocess.STDOUT if said else None
    return subprocess.run(program.command, cwd=program.folder, env={**threads, **os.environ}, stdin=subprocess.DEVNULL,
                          stdout=said, stderr=errors).returncode == 0


def run_beside(program):
    """The same beside others: what the program says is shown when it has ended."""
    with tempfile.TemporaryFile() as said:
        passed = run(program, said)
        said.seek(0)
        with SHOWN:
            heading(program)
            sys.stdout.buffer.write(said.read())
            sys.stdout.flush()
    return passed


SHOWN = threading.Lock()


def heading(program):
    print(f"     Running {program.title}", flush=True)


def run_all(options):
    """Builds the programs, runs them, and gives those that failed."""
    alone, begun, libraries = [], [], []
    chosen = any(option.split("=")[0] in TARGETS for option in options)
    # All that is tested, unless something is chosen; what is only an example is left to clippy.
    targets = [] if chosen else ["--tests"]
    with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        try:
            for program in built(options, targets, libraries):
                if program.name in ALONE:
                    alone.append(program)
                else:
                    begun.append((program, pool.submit(run_beside, program)))
            if libraries and not chosen:
                program = examples(options)
                begun.append((program, pool.submit(run_beside, program)))
        except NotBuilt:
            pool.shutdown(cancel_futures=True)
            raise
        others = [passed for _, passed in begun]
        tell_when_done(others)
        failed = []
        for program in sorted(alone, key=lambda it: ALONE.index(it.name)):
            if program.name != WAITS:
                concurrent.futures.wait(others)
            heading(program)
            failed += [] if run(program) else [program]
    return failed + [program for program, passed in begun if not passed.result()]


def tell_when_done(others):
    """Names a file to the programs begun from now on, whose lock is kept until the others have ended."""
    busy = tempfile.NamedTemporaryFile(prefix="trunkline-busy.")
    fcntl.flock(busy, fcntl.LOCK_EX)
    os.environ["TRUNKLINE_BUSY"] = busy.name

    def wait():
        concurrent.futures.wait(others)
        fcntl.flock(busy, fcntl.LOCK_UN)

    threading.Thread(target=wait).start()
    # The file goes with this program.
    atexit.register(busy.close)


def tell_skipped(notes):
    """How many tests were skipped, and why: each note is a reason, a tab, and a test."""
    reasons = collections.Counter(line.split("\t")[0] for line in notes.read().decode().splitlines())
    print(f"{sum(reasons.values())} skipped")
    for reason, times in reasons.most_common():
        print(f"  {times} x {reason}")


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    with tempfile.NamedTemporaryFile(prefix="trunkline-skips.") as notes:
        # Some tests become other users.
        os.chmod(notes.name, 0o666)
        os.environ["TRUNKLINE_SKIP_LOG"] = notes.name
        failed = run_all(sys.argv[1:])
        tell_skipped(notes)
    for program in failed:
        print(f"failed: {program.title}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except NotBuilt as error:
        sys.exit(error.args[0])
    except KeyboardInterrupt:
        sys.exit(130)
