#!/usr/bin/env python3
"""Writes scenarios of the simulator benchmark's shapes (B1 to B4), of any size.

    scripts/scale.py b1 1000 > b1.toml
    trunkline run b1.toml --engine sim

b1: so many pairs of hosts, a TCP connection each, through one line of 1 Gbit/s and 10 ms.
b2, b3: so many sources of datagrams at a constant rate through one FIFO, or FQ-CoDel, of 10 Gbit/s.
b4: a fat-tree of 128 hosts (k = 8) under windows of 64 segments; the number is of flows, 128 unless given.

The shapes are those of `crates/bench/src/simulator`; what a scenario cannot say alike stands beside it. With
`--length` (seconds) a run is shorter than the benchmark's.
"""

import argparse

ACCESS = 'rate = "10Gbit/s"\ndelay = "10us"\nlimit = "100000p"\n'


def span(seconds):
    return f"{round(seconds * 1e9)}ns"


def host(name):
    return f'[[host]]\nname = "{name}"\n'


def node(name):
    return f'[[node]]\nname = "{name}"\n'


def link(name, one, other, rest):
    return f'[[link]]\nname = "{name}"\nbetween = ["{one}", "{other}"]\n{rest}'


def head(name, length):
    return f'name = "{name}"\nabout = "A shape of the simulator benchmark."\nstop_after = "{span(length)}"\n'


def b1(pairs, length):
    """NewReno without SACK and time stamps, an acknowledgement for each segment, starts spread over a second."""
    yield head(f"B1 {pairs}", length)
    yield node("left") + node("right")
    yield link("trunk", "left", "right", 'rate = "1Gbit/s"\ndelay = "10ms"\nlimit = "1666p"\n')
    for pair in range(pairs):
        yield host(f"s{pair}") + host(f"r{pair}")
        yield link(f"a{pair}", f"s{pair}", "left", ACCESS) + link(f"b{pair}", "right", f"r{pair}", ACCESS)
        start = pair * 1_000_000_000 // pairs
        yield (
            f'[[traffic]]\nname = "t{pair}"\nkind = "greedy"\nfrom = "s{pair}"\nto = "r{pair}"\n'
            f'start = "{start}ns"\nduration = "{span(length)}"\nwarm_up = "0s"\ninterval = "{span(length)}"\nwrite = 65536\n'
            'transport = { kind = "tcp", profile = "trunkline", congestion = "newreno", mss = 1448, '
            'window = "64MiB", sack = false, timestamps = false, delayed_ack = "0s" }\n'
        )


def constant(sources, length, rate, discipline):
    """Datagrams of 1500 bytes; the sources begin one after the other within an interval."""
    yield node("middle") + host("sink")
    yield link("trunk", "middle", "sink", f'rate = "10Gbit/s"\ndelay = "1ms"\nlimit = "1000p"\n{discipline}')
    for source in range(sources):
        yield host(f"s{source}") + link(f"a{source}", f"s{source}", "middle", ACCESS)
        start = source * 1_000_000_000 // rate
        yield (
            f'[[traffic]]\nname = "t{source}"\nkind = "paced"\nfrom = "s{source}"\nto = "sink"\nsize = 1500\n'
            f'start = "{start}ns"\nrate = "{rate * 1500 * 8 // sources}bit/s"\nduration = "{span(length)}"\n'
            'transport = "datagram"\n'
        )


def b2(sources, length):
    yield head(f"B2 {sources}", length + 1)
    yield from constant(sources, length, 750_000, "")


def b3(sources, length):
    yield head(f"B3 {sources}", length + 1)
    yield from constant(sources, length, 1_000_000, 'discipline = "fq-codel"\n')


def b4(flows, length):
    """Host i sends to (37 i + 5) mod 128; the up-ports are dst mod 4, then (dst / 4) mod 4."""
    yield head(f"B4 {flows}", length)
    wire = 'rate = "10Gbit/s"\ndelay = "1us"\nlimit = "1000p"\n'
    for core in range(16):
        yield node(f"c{core}")
    for pod in range(8):
        for at in range(4):
            yield node(f"e{pod}-{at}") + node(f"g{pod}-{at}")
        for edge in range(4):
            for up in range(4):
                yield link(f"eg{pod}-{edge}-{up}", f"e{pod}-{edge}", f"g{pod}-{up}", wire)
        for up in range(4):
            for core in range(4):
                yield link(f"gc{pod}-{up}-{core}", f"g{pod}-{up}", f"c{4 * up + core}", wire)
    for number in range(128):
        yield host(f"h{number}")
        yield link(f"h{number}", f"h{number}", f"e{number // 16}-{number // 4 % 4}", wire)
    for flow in range(flows):
        source = flow % 128
        target = (37 * source + 5) % 128
        if target == source:
            continue
        (pod, edge), (there, last) = (divmod(it // 4, 4) for it in (source, target))
        up, core = target % 4, target // 4 % 4
        via = [f"e{pod}-{edge}"]
        if pod != there:
            via += [f"g{pod}-{up}", f"c{4 * up + core}", f"g{there}-{up}"]
        elif edge != last:
            via += [f"g{pod}-{up}"]
        if (pod, edge) != (there, last):
            via += [f"e{there}-{last}"]
        yield (
            f'[[traffic]]\nname = "t{flow}"\nkind = "greedy"\nfrom = "h{source}"\nto = "h{target}"\nvia = {via}\n'.replace("'", '"')
            + f'start = "{100 * flow}ns"\nduration = "{span(length)}"\nwarm_up = "0s"\ninterval = "{span(length)}"\nwrite = 65536\n'
            'transport = { kind = "tcp", profile = "trunkline", congestion = "newreno", mss = 1448, '
            'window = 92672, sack = false, timestamps = false, delayed_ack = "0s" }\n'
        )


SHAPES = {"b1": (b1, 1000, 10.0), "b2": (b2, 1000, 1.0), "b3": (b3, 100, 1.0), "b4": (b4, 128, 0.01)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("number", type=int, nargs="?", help="pairs, sources or flows")
    parser.add_argument("--length", type=float, help="seconds simulated")
    asked = parser.parse_args()
    shape, number, length = SHAPES[asked.shape]
    for text in shape(asked.number or number, asked.length or length):
        print(text, end="")


if __name__ == "__main__":
    main()
