#!/usr/bin/env python3
"""Measures what a hop and a flow cost in `trunkline run` on scenarios of the simulator benchmark's shapes.

    scripts/scale_cost.py target/release/trunkline target/release/trunkline-bench b1 10 100 1000

For each number of flows one line: hops; nanoseconds of processor time for each hop, as a ratio to that of the benchmark's
own workload of this shape that is nearest in size (the median of the rounds, the least and the greatest); and bytes of
memory for each flow. A run's time is that of a whole run less that of a run in which hardly anything has time to
happen: reading the file and building the network are left out, measuring and reporting are not. Memory is the most
that the process ever held, less what it holds with ten flows; what is under way is in it.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

SCALE = pathlib.Path(__file__).parent / "scale.py"
# The benchmark's own workloads of a shape, by size, and the length simulated here in seconds.
OWN = {
    "b1": ({100: "b1-100", 1000: "b1-1000", 10000: "b1-10000"}, 2.0),
    "b2": ({100: "b2-100", 1000: "b2-1000", 10000: "b2-10000"}, 0.4),
    "b3": ({100: "b3"}, 0.3),
    "b4": ({128: "b4"}, 0.002),
}
HARDLY = 1e-6
# Counted in a process of its own: whoever has read a long run.json is large, and the memory of a command that it starts
# is never less than its own.
COUNT = "import json, sys; print(sum(link['delivered'] for run in json.load(sys.stdin)['runs'] for link in run['links']))"
PARTS = 5


def spent(command):
    """Processor seconds and bytes of a command, and what it printed."""
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            sys.exit(f"scale_cost: {' '.join(map(str, command))} ended with {child.returncode}")
        out.seek(0)
        return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, out.read().decode()


def scenario(folder, shape, number, length):
    path = folder / f"{shape}-{number}-{length}.toml"
    with path.open("w") as out:
        subprocess.run([sys.executable, SCALE, shape, str(number), "--length", str(length)], stdout=out, check=True)
    return path


class Runs:
    """Runs of the command on one scenario."""

    def __init__(self, command, folder, shape, number):
        _, length = OWN[shape]
        self.command = [command, "run", "--engine", "sim", "--threads", "1"]
        self.whole = scenario(folder, shape, number, length)
        self.empty = scenario(folder, shape, number, HARDLY)
        self.bytes = 0
        # A directory of results has charts of each traffic.
        said = subprocess.Popen([*self.command, self.whole, "--json"], stdout=subprocess.PIPE)
        count = subprocess.run([sys.executable, "-c", COUNT], stdin=said.stdout, stdout=subprocess.PIPE, check=True)
        if said.wait() != 0:
            sys.exit(f"scale_cost: {self.whole} ended with {said.returncode}")
        self.hops = int(count.stdout)

    def nanos(self):
        whole, self.bytes, _ = spent([*self.command, self.whole])
        return (whole - spent([*self.command, self.empty])[0]) * 1e9 / self.hops


def own(bench, name):
    """Nanoseconds for each hop of the benchmark's workload."""
    whole, _, said = spent([bench, "simulate", name, str(PARTS)])
    empty, _, _ = spent([bench, "simulate", name, str(10**9)])
    hops = int(said.split("hops: ")[1].split()[0])
    return (whole - empty) * 1e9 / hops


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command")
    parser.add_argument("bench")
    parser.add_argument("shape", choices=OWN)
    parser.add_argument("numbers", type=int, nargs="+")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(asked, pathlib.Path(folder))


def measure(asked, folder):
    few = Runs(asked.command, folder, asked.shape, 10)
    few.nanos()
    print(" flows      hops  ns/hop  the benchmark's  ratio (range)       bytes/flow")
    for number in asked.numbers:
        runs = Runs(asked.command, folder, asked.shape, number)
        sizes = OWN[asked.shape][0]
        near = min(sizes, key=lambda size: abs(size - number))
        pairs = [(runs.nanos(), own(asked.bench, sizes[near])) for _ in range(asked.rounds)]
        ratios = sorted(ours / theirs for ours, theirs in pairs)
        ours, theirs = (statistics.median(it) for it in zip(*pairs))
        each = f"{(runs.bytes - few.bytes) / (number - 10):.0f}" if number > 10 else "-"
        ratio = f"{statistics.median(ratios):.1f} ({ratios[0]:.1f} to {ratios[-1]:.1f})"
        print(f"{number:6} {runs.hops:9} {ours:7.0f}  {theirs:15.0f}  {ratio:19} {each:>10}", flush=True)


if __name__ == "__main__":
    main()
