#!/usr/bin/env python3
"""Runs the tests: scripts/test.py OPTION..., such as --workspace or -p trunkline-path (options of cargo test)

cargo builds the test programs, as it does for cargo test. A few of them run at the same time, each once it is built,
while cargo goes on with the rest. Programs that judge what was measured in real time come at the end, one after another,
and have the machine to themselves; the end-to-end tests that judge nothing run as soon as they are built.

At the end it tells how many tests were skipped, and why. With TRUNKLINE_NO_SKIP=1 a test that would be skipped fails.
The status is 0 if all passed, 1 if a test failed, and cargo's if the tests could not be built.
"""
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
import time

# Programs that judge what was measured, besides: the emulator's and the endpoint's.
ALONE = ["live"]
# The end-to-end tests begin once they are built: those that judge nothing beside what is still built, but no other
# program; the rest wait until all others have ended (turn.rs).
WAITS = "e2e"
# How many of the others run at the same time. Some of them only wait.
AT_A_TIME = 3
# How often what a program says is looked for, in seconds.
LOOK = 0.2
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


def begin(program, said=None):
    """Starts a program. What it says goes where this program's goes, or to a file."""
    threads = {"RUST_TEST_THREADS": THREADS[program.name]} if program.name in THREADS else {}
    errors = subprocess.STDOUT if said else None
    return subprocess.Popen(program.command, cwd=program.folder, env={**threads, **os.environ},
                            stdin=subprocess.DEVNULL, stdout=said, stderr=errors)


# Others pass it before they begin, and one that has it to itself keeps them out.
GATE = threading.Lock()
# One for each that runs.
RUNNING = threading.Semaphore(AT_A_TIME)


def run_beside(program):
    """Runs a program beside others: what it says is shown when it has ended. True if its tests passed."""
    with GATE:
        RUNNING.acquire()
    try:
        with tempfile.TemporaryFile() as said:
            passed = begin(program, said).wait() == 0
            said.seek(0)
            with SHOWN:
                heading(program)
                sys.stdout.buffer.write(said.read())
                sys.stdout.flush()
        return passed
    finally:
        RUNNING.release()


def run_alone(program):
    """Runs a program that has the machine and the terminal to itself. True if its tests passed."""
    heading(program)
    return begin(program).wait() == 0


class Waiting:
    """A program that begins before others have ended, and then waits for that. What it says till then is kept.

    It begins when those that run have ended. Some of its tests wait for nobody. When they have ended it writes to the file
    `busy`, and others may begin again.
    """

    def __init__(self, program, busy):
        self.program = program
        self.said = tempfile.NamedTemporaryFile(prefix="trunkline-said.")
        self.process = None
        self.begun = threading.Event()
        threading.Thread(target=self.keep_others_out, args=(busy,), daemon=True).start()

    def keep_others_out(self, busy):
        with GATE, contextlib.ExitStack() as all_of_them:
            for _ in range(AT_A_TIME):
                all_of_them.enter_context(RUNNING)
            self.process = begin(self.program, self.said)
            self.begun.set()
            while self.process.poll() is None and not os.path.getsize(busy):
                time.sleep(LOOK)

    def end(self):
        self.begun.wait()
        self.process.terminate()
        self.process.wait()

    def passed(self):
        """Shows what it has said, and then what it says until it has ended. True if its tests passed."""
        self.begun.wait()
        heading(self.program)
        ended = False
        with open(self.said.name, "rb") as said:
            while not ended:
                # What it said last is read after its end.
                ended = self.process.poll() is not None
                sys.stdout.buffer.write(said.read())
                sys.stdout.flush()
                time.sleep(0 if ended else LOOK)
        return self.process.returncode == 0


SHOWN = threading.Lock()


def heading(program):
    print(f"     Running {program.title}", flush=True)


def run_all(options):
    """Builds the programs, runs them, and gives those that failed."""
    # Its lock is kept until all have ended that run beside others: for that the end-to-end tests wait.
    with tempfile.NamedTemporaryFile(prefix="trunkline-busy.") as busy:
        fcntl.flock(busy, fcntl.LOCK_EX)
        os.environ["TRUNKLINE_BUSY"] = busy.name
        failed, waiting, alone = run_those_that_bear_others(options, busy.name)
        fcntl.flock(busy, fcntl.LOCK_UN)
        failed += [it.program for it in waiting if not it.passed()]
        return failed + [program for program in alone if not run_alone(program)]


def run_those_that_bear_others(options, busy):
    """Builds the programs and runs them if they bear others. Gives those that failed, those that wait, and the rest."""
    begun, waiting, alone, libraries = [], [], [], []
    chosen = any(option.split("=")[0] in TARGETS for option in options)
    # All that is tested, unless something is chosen; what is only an example is left to clippy.
    targets = [] if chosen else ["--tests"]
    with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        try:
            for program in built(options, targets, libraries):
                if program.name == WAITS:
                    waiting.append(Waiting(program, busy))
                elif program.name in ALONE:
                    alone.append(program)
                else:
                    begun.append((program, pool.submit(run_beside, program)))
            if libraries and not chosen:
                program = examples(options)
                begun.append((program, pool.submit(run_beside, program)))
        except NotBuilt:
            for it in waiting:
                it.end()
            pool.shutdown(cancel_futures=True)
            raise
    return [program for program, passed in begun if not passed.result()], waiting, alone


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
