#!/usr/bin/env python3
"""Changes each inferred parameter of a study and tells which published cells move, as a Markdown table.

A study is copied, one value in the copy is multiplied by 1 + STEP and by 1 - STEP, and `trunkline study run` does it
again. Parameters that are `like` another one change with it. Cells are those of published-and-ours.csv that have a
published value and a tolerance and rest on a run; results of formulas that use measured values are among them. A cell that
the changed study no longer gives vanishes, and is lost if it was within its tolerance.

  scripts/sensitivity.py studies/vandewater1988 --trunkline target/release/trunkline
  scripts/sensitivity.py studies/hawley1989 --messages 40 --transfers 3 --work /tmp/sensitivity      # resumed if interrupted
  scripts/sensitivity.py studies/lds2001 --watch share --parts 'BSD Reno, EPD"' --engine sim

Scenarios that a change cannot reach are left out: those without a host whose board or processor is changed, and all but one
if the change stands in a scenario. --messages and --transfers shorten the tests: a greater `repeat` (of less than 1000) becomes
it, of interactive and of bulk traffic, in the reference too.
The text of each `like` has to begin with the other parameter's key (after its file, if that is another), as in the studies of Datakit.
A study whose report prints no values has --watch EXPERIMENT: that table's own values, in its unit, stand for judged cells;
--parts REGEX keeps of lists of parts only the lines that match. --seeds N shows what chance alone does: N other seeds.
--entry KEY does one parameter only. --set FILE KEY VALUE runs the study with one value (TOML) in place of another and lists
the cells that move; it may be given more than once, and all are set together. Values that are no number are listed as such.
Exit status: 0, or 1 if a run failed or a key was not found.
"""

import argparse
import csv
import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?")
HEADER = re.compile(r"^\[\[?([^\]]+)\]\]?")
REPEAT = re.compile(r"(?m)^repeat = (\d{1,3})$")
NAME = re.compile(r'^name\s*=\s*"([^"]*)"')


def span(text, key):
    """Start and end of the value at a path such as `interface.cure.split` or `traffic.bulk.transport.block`."""
    place = 0
    table, best = [], None
    for line in text.splitlines(keepends=True):
        if header := HEADER.match(line):
            table = header[1].split(".")
        elif name := NAME.match(line):
            table = table[:1] + [name[1]]
        own = ".".join(table)
        if "=" in line and not line.startswith(("#", "[")) and key.startswith(own + "."):
            rest = key[len(own) + 1:].split(".")
            if line.split("=", 1)[0].strip() == rest[0]:
                start = place + line.index("=") + 1
                best = inner(text, (start, place + len(line.rstrip())), rest[1:])
        place += len(line)
    if best is None:
        raise KeyError(key)
    return best


def inner(text, where, path):
    """The part of an inline table's text that belongs to the path."""
    start, end = where
    while text[start] == " ":
        start += 1
    for step in path:
        found = re.search(r"[{,]\s*" + re.escape(step) + r"\s*=\s*", text[start:end])
        if found is None:
            raise KeyError(step)
        start += found.end()
        value = re.match(r'"[^"]*"|\{[^}]*\}|\[[^\]]*\]|[^,}\]\s]+', text[start:end])
        end = start + value.end()
    return start, end


def scaled(value, factor):
    """The value's text with its numbers multiplied; a whole number stays one, and never becomes 0."""

    def times(found):
        number = float(found[0]) * factor
        if "." in found[0] or value.rstrip('"}] ').endswith(("s", "%")):
            return f"{number:.10g}"
        return str(max(1, round(number)))

    return NUMBER.sub(times, value)


def groups(parameters):
    """Each inferred parameter with those that are like it, as lists of (file, key)."""
    entry = {(one["file"], one["key"]): one for one in parameters}

    def head(one):
        seen = set()
        while "like" in one:
            words = one["like"].split(": ")[0].split()
            at = (words[0], words[1]) if words[0].endswith(".toml") else (one["file"], words[0])
            if at not in entry or at in seen:
                raise KeyError(f"{one['file']} {one['key']}: like {' '.join(words)}")
            seen.add(at)
            one = entry[at]
        return one["file"], one["key"]

    found = {(one["file"], one["key"]): [] for one in parameters if "inferred" in one}
    for one in parameters:
        if "choice" not in one and "section" not in one and head(one) in found:
            found[head(one)].append((one["file"], one["key"]))
    return found


def experiments(study):
    """Experiments and their parts."""
    return [one for each in study["experiment"] for one in [each, *each.get("part", [])]]


def bare(text, reached, args):
    """A study's text with the experiments that are judged, of scenarios that are reached, and what those refer to."""
    if args.parts:
        lines = text.splitlines(keepends=True)
        text = "".join(one for one in lines if not one.startswith("    { where") or re.search(args.parts, one))
    head, *blocks = re.split(r"(?m)^(?=\[\[(?:experiment|goal|figure|variant|quote)\]\])", text)
    head = re.split(r"(?m)^(?:#.*\n)*parameter = ", head)[0]
    read = [(*next(iter(tomllib.loads(block).items())), block) for block in blocks]
    variants = [block for kind, _, block in read if kind == "variant"]
    every = {one["name"]: (one, block) for kind, (one,), block in read if kind == "experiment"}
    needs = {name: set(re.findall(r'experiment = "([^"]*)"', block)) for name, (_, block) in every.items()}
    wanted = {name for name, (one, _) in every.items() if "published" in one and "tolerance" in one}
    wanted = {args.watch} if args.watch else wanted
    while more := set().union(*(needs[name] for name in wanted)) - wanted:
        wanted |= more

    def runs(name):
        one, _ = every[name]
        files = {part["scenario"] for part in [one, *one.get("part", [])] if "scenario" in part}
        return bool(files & reached) or any(runs(other) for other in needs[name])

    kept = {name for name in wanted if runs(name)}
    while more := set().union(*(needs[name] for name in kept), set()) - kept:
        kept |= more
    return head + "".join([*variants, *(block for name, (_, block) in every.items() if name in kept)])


class Runs:
    """Copies of a study with changed values, and what they gave."""

    def __init__(self, args):
        self.args = args
        self.source = args.study.resolve()
        self.study = tomllib.loads((self.source / "study.toml").read_text())
        self.kept = args.work / f"{self.source.name}-{self.state()}"

    def state(self):
        """A name for all that results depend on, so that none is kept for another study, program or length."""
        program = pathlib.Path(shutil.which(self.args.trunkline) or sys.exit(f"there is no program {self.args.trunkline}"))
        paths = [*sorted(self.source.rglob("*.toml")), *sorted(self.source.rglob("*.csv"))]
        paths += [self.source / file for file in self.study.get("shared", [])]
        made = program.stat()
        length = f"{self.args.messages} {self.args.transfers} {self.args.watch} {self.args.parts}"
        found = hashlib.sha256(f"{length} {made.st_size} {made.st_mtime_ns}".encode())
        for path in paths:
            found.update(path.read_bytes())
        return found.hexdigest()[:12]

    def text(self, file):
        return (self.source / file).read_text()

    def value(self, file, key):
        text = self.text(file)
        start, end = span(text, key)
        return text[start:end]

    def cells(self, name, edits, seed=None):
        """Cells of the study with edits, a list of (file, key, text of the value): key to (published, ours, verdict).
        A judged cell that a run was to give and did not has None for ours."""
        out = self.kept / name
        if not (out / "published-and-ours.csv").exists():
            self.run(out, edits, seed)
        found = {}
        with open(out / "published-and-ours.csv", newline="") as file:
            for row in csv.DictReader(file):
                cell = (row["experiment"], row["cell"])
                if row["experiment"] == self.args.watch and row["ours"]:
                    found[cell] = (None, float(row["ours"]), True)
                elif row["verdict"] in ("within", "outside"):
                    found[cell] = (float(row["published"]), float(row["ours"]), row["verdict"] == "within")
                elif row["verdict"] == "missing":
                    found[cell] = (float(row["published"]), None, False)
        return found

    def reference(self):
        """The cells of the study as it is, those that it gives."""
        return {cell: one for cell, one in self.cells("reference", []).items() if one[1] is not None}

    def reached(self, edits):
        """The scenario files that the edits can change."""
        files = {one["scenario"] for one in experiments(self.study) if "scenario" in one}
        hosts = self.hosts()
        found = set()
        for file, key, _ in edits:
            kind, name = key.split(".")[:2]
            if file in files:
                found.add(file)
            elif kind in ("interface", "processor"):
                users = {host["name"] for host in hosts if host.get(kind) == name}
                found |= {one for one in files if users & self.ends(one)}
            else:
                return files
        return found if edits else files

    def hosts(self):
        files = [tomllib.loads(self.text(file)) for file in self.study.get("shared", [])]
        return [host for file in files for host in file.get("host", [])]

    def ends(self, scenario):
        """The hosts that a scenario's traffic runs between."""
        found = set()
        for traffic in tomllib.loads(self.text(scenario)).get("traffic", []):
            for end in (traffic.get(key, []) for key in ("from", "to", "from_each")):
                found |= {end} if isinstance(end, str) else set(end)
        return found

    def run(self, out, edits, seed=None):
        copy = self.args.work / f"copy-{self.source.name}"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.source.parent, copy)
        for file, key, value in edits:
            path = copy / self.source.name / file
            text = path.read_text()
            start, end = span(text, key)
            path.write_text(text[:start] + value + text[end:])
        out.mkdir(parents=True, exist_ok=True)
        for path in (copy / self.source.name).glob("*.toml"):
            if path.name == "study.toml":
                path.write_text(bare(path.read_text(), self.reached(edits), self.args))
                if "[[experiment]]" not in path.read_text():
                    (out / "published-and-ours.csv").write_text("")
                    return
                continue
            if seed is not None:
                path.write_text(f"seed = {seed}\n{path.read_text()}")
            most = self.args.messages if '"interactive"' in path.read_text() else self.args.transfers
            if most:
                path.write_text(REPEAT.sub(lambda found: f"repeat = {min(int(found[1]), most)}", path.read_text()))
        made = copy / "out"
        command = [self.args.trunkline, "study", "run", str(copy / self.source.name), "--out", str(made), "--force"]
        command += ["--engine", self.args.engine] if self.args.engine else []
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{out.name}: {done.stderr.strip()}")
        for path in made.rglob("published-and-ours.csv"):
            shutil.copy(path, out / "published-and-ours.csv")


def moved(reference, changed):
    """How cells moved: each move in per cent of its published value, the furthest, those that vanished, those met and
    those missed since. A cell that no run of the changed study could reach is not among those changed."""
    vanished = [cell for cell in reference if cell in changed and changed[cell][1] is None]
    moves = {
        cell: 100 * (changed[cell][1] - ours) / published
        for cell, (published, ours, _) in reference.items()
        if cell in changed and cell not in vanished and published and changed[cell][1] != ours
    }
    furthest = max(moves, key=lambda cell: abs(moves[cell]), default=None)
    lost = [cell for cell, one in reference.items() if one[2] and not changed.get(cell, one)[2]]
    gained = [cell for cell, one in reference.items() if not one[2] and changed.get(cell, one)[2]]
    return moves, furthest, vanished, lost, gained


def watched(reference, changed):
    """The same of values that nothing published stands beside: in the table's own unit."""
    moves = {cell: changed[cell][1] - one[1] for cell, one in reference.items() if cell in changed}
    if not moves:
        return "none"
    furthest = max(moves, key=lambda cell: abs(moves[cell]))
    mean = sum(abs(move) for move in moves.values()) / len(moves)
    count = sum(move != 0 for move in moves.values())
    return f"{count} of {len(moves)} move, by {mean:.1f} in the mean, furthest {moves[furthest]:+.1f} ({furthest[1]})"


def words(reference, changed):
    """One cell of the table printed."""
    if all(one[0] is None for one in reference.values()):
        return watched(reference, changed)
    moves, furthest, vanished, lost, gained = moved(reference, changed)
    if furthest is None and not vanished:
        return "none"
    far = f", furthest {moves[furthest]:+.1f} % ({furthest[0]}: {furthest[1]})" if furthest else ""
    gone = f", {len(vanished)} vanish" if vanished else ""
    return f"{len(moves)} move{far}{gone}; {len(lost)} lost, {len(gained)} gained"


def table(runs, args):
    reference = runs.reference()
    met = sum(one[2] for one in reference.values())
    print(f"{len(reference)} values watched.\n" if args.watch else f"{len(reference)} judged cells, {met} within their tolerance.\n")
    for seed in range(2, 2 + args.seeds):
        print(f"seed {seed}: {words(reference, runs.cells(f'seed-{seed}', [], seed))}", flush=True)
    up, down = f"+{args.step:.0%}".replace("%", " %"), f"-{args.step:.0%}".replace("%", " %")
    print(f"| parameter | value | {up} | {down} |\n|---|---|---|---|")
    for (file, key), members in groups(runs.study["parameter"]).items():
        if args.entry and key not in args.entry:
            continue
        value = runs.value(file, key)
        also = f" (and {len(members) - 1} like it)" if len(members) > 1 else ""
        row = [f"`{key}`{also}", f"`{value}`"]
        for sign, factor in (("up", 1 + args.step), ("down", 1 - args.step)):
            edits = [(file, key, scaled(runs.value(file, key), factor)) for file, key in members]
            if not NUMBER.search(value):
                row.append("no number")
            else:
                row.append(words(reference, runs.cells(f"{key}-{sign}-{args.step}", edits)))
        print("| " + " | ".join(row) + " |", flush=True)


def one_setting(runs, args):
    reference = runs.reference()
    name = "set-" + hashlib.sha256(json.dumps(args.set).encode()).hexdigest()[:16]
    changed = runs.cells(name, [tuple(one) for one in args.set])
    moves, _, vanished, lost, gained = moved(reference, changed)
    print(words(reference, changed))
    for cell in sorted(moves, key=lambda cell: -abs(moves[cell])):
        mark = " lost" if cell in lost else " gained" if cell in gained else ""
        published, before, _ = reference[cell]
        print(f"  {cell[0]}: {cell[1]}: {before:.6g} -> {changed[cell][1]:.6g} for {published:.6g}{mark}")
    for cell in vanished:
        published, before, _ = reference[cell]
        print(f"  {cell[0]}: {cell[1]}: {before:.6g} -> nothing for {published:.6g}{' lost' if cell in lost else ''}")


def main():
    first, *rest = __doc__.split("\n\n")
    parser = argparse.ArgumentParser(
        description=first, epilog="\n\n".join(rest), formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("study", type=pathlib.Path, help="the study's directory, beside those whose files it shares")
    parser.add_argument("--trunkline", default="trunkline", help="the program")
    parser.add_argument("--step", type=float, default=0.2, help="share by which a value is changed (0.2)")
    parser.add_argument("--messages", type=int, help="repetitions of interactive traffic at most")
    parser.add_argument("--transfers", type=int, help="repetitions of bulk traffic at most")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("/tmp/trunkline-sensitivity"))
    parser.add_argument("--watch", metavar="EXPERIMENT", help="a table whose own values are watched, if nothing is published")
    parser.add_argument("--parts", metavar="REGEX", help="of lists of parts only the lines that match")
    parser.add_argument("--seeds", type=int, default=0, help="other seeds to try, without a change (0)")
    parser.add_argument("--engine", help="the engines that may be used, as of study run")
    parser.add_argument("--entry", action="append", help="this parameter only")
    parser.add_argument("--set", action="append", nargs=3, metavar=("FILE", "KEY", "VALUE"))
    args = parser.parse_args()
    runs = Runs(args)
    try:
        (one_setting if args.set else table)(runs, args)
    except KeyError as missing:
        sys.exit(f"there is no parameter {missing.args[0]}")


if __name__ == "__main__":
    main()
