#!/usr/bin/env python3
"""Movers of bulk data side by side, each over the same emulated path in the same minutes.

    scripts/peers.py [--seconds 20] [--rows 100M-100ms-1%,…] [--programs send,iperf3-cubic,…] [--out peers.json]

For each path a transfer that the line could carry in SECONDS, from the first word to the end (iperf3: SECONDS, without its
opening): goodput as a share of what
the line lets through of user data (rate x (1 - loss) x user bytes of a full packet / its bytes on the line), bytes that entered the path for each
that was delivered, and processor seconds of both ends for each GB. A transfer that takes three times as long is ended, and what
has come by then counts. Runs as root; programs that are not there are left out, and said to be.
"""
import argparse
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
TRUNKLINE = os.environ.get("TRUNKLINE", str(HERE.parent / "target/release/trunkline"))
# A small mover on quinn, and one on Debian's libudt.
BENCH = str(pathlib.Path(TRUNKLINE).with_name("trunkline-bench"))
UDT = str(HERE.parent / "target/peers/udt")

# name: rate in bit/s, settings of the path, share lost.
PATHS = {
    "10M-600ms-0%": (10e6, "--rate 10mbit --delay 300ms --limit 375kB", 0.0),
    "10M-600ms-1%": (10e6, "--rate 10mbit --delay 300ms --limit 375kB --loss 1%", 0.01),
    "10M-600ms-5%": (10e6, "--rate 10mbit --delay 300ms --limit 375kB --loss 5%", 0.05),
    "100M-100ms-0%": (100e6, "--rate 100mbit --delay 50ms --limit 625kB", 0.0),
    "100M-100ms-1%": (100e6, "--rate 100mbit --delay 50ms --limit 625kB --loss 1%", 0.01),
    "300M-50ms-0.1%": (300e6, "--rate 300mbit --delay 25ms --limit 938kB --loss 0.1%", 0.001),
    "1M-1.8s-0.5%": (1e6, "--rate 1mbit --delay 900ms --limit 112kB --loss 0.5%", 0.005),
    "100M-100ms-bursts": (100e6, "--rate 100mbit --delay 50ms --limit 625kB --loss ge:p=0.204%,r=10%", 0.02),
    "10M-100ms-outage": (10e6, "--rate 10mbit --delay 50ms --limit 125kB --schedule '5s loss=100%; 35s loss=0%'", 0.0),
}

SSH = "-p 2222 -i {dir}/key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
SSHD = (
    "mkdir -p /run/sshd; exec /usr/sbin/sshd -D -e -p 2222 -h {dir}/key -o AuthorizedKeysFile={dir}/key.pub "
    "-o StrictModes=no -o UsePAM=no -o PidFile=none"
)
QUIC = "{{bench}} quic-send {{dir}}/in {{dir}}/file --congestion {}"
# name: programs needed, server, client, user bytes and bytes on the line of a full packet, whether a file is moved.
PROGRAMS = {
    "send": ([], "{trunkline} receive {dir}/in --bind 0.0.0.0 --key-file {dir}/psk", "{trunkline} send {dir}/file 10.77.0.1 --key-file {dir}/psk", (1368, 1457), True),
    "iperf3-cubic": (["iperf3"], "iperf3 -s -1", "iperf3 -c 10.77.0.1 -C cubic -J -t {seconds}", (1448, 1500), False),
    "iperf3-bbr": (["iperf3"], "iperf3 -s -1", "iperf3 -c 10.77.0.1 -C bbr -J -t {seconds}", (1448, 1500), False),
    "rsync-ssh": (["rsync", "sshd"], SSHD, "rsync --inplace -e 'ssh " + SSH + "' {dir}/file root@10.77.0.1:{dir}/in/", (1448, 1500), True),
    "quic-cubic": ([BENCH], "{bench} quic-receive {dir}/in --bind 10.77.0.1", QUIC.format("cubic"), (1412, 1480), True),
    "quic-bbr": ([BENCH], "{bench} quic-receive {dir}/in --bind 10.77.0.1", QUIC.format("bbr"), (1412, 1480), True),
    "udt": ([UDT], "{udt} receive 10.77.0.1 9000 {dir}/in/file", "{udt} send 10.77.0.1 9000 {dir}/file", (1456, 1500), True),
    "uftp": (["uftp", "uftpd"], "uftpd -d -D {dir}/in", "uftp -q -R {kbps} -M 10.77.0.1 -P 10.77.0.1 {dir}/file", (1300, 1362), True),
}


def child(command, report, patience):
    """Runs a command for so long at most, then writes its time and what processors it took."""
    begun = time.monotonic()
    process = subprocess.Popen(["sh", "-c", command], stdout=open(report + ".out", "w"), start_new_session=True)

    def end(*_):
        os.killpg(process.pid, signal.SIGKILL)

    signal.signal(signal.SIGTERM, end)
    try:
        status = process.wait(patience)
    except subprocess.TimeoutExpired:
        end()
        status = process.wait()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = {"seconds": time.monotonic() - begun, "status": status, "cpu": used.ru_utime + used.ru_stime}
    pathlib.Path(report).write_text(json.dumps(took))


def delivered(place, near, moves_file):
    """Bytes at the far end, of a file that may be unfinished, or as iperf3 counts them; and the seconds that they took."""
    if moves_file:
        files = [path for path in (place / "in").rglob("*") if path.is_file()]
        return max((path.stat().st_blocks * 512 for path in files), default=0), near["seconds"]
    said = json.loads((place / "near.out").read_text() or "{}").get("end", {})
    received = said.get("sum_received", {})
    # It begins to count when its connections stand.
    return received.get("bytes", 0), received.get("seconds", near["seconds"])


def one(path, program, seconds):
    rate, settings, loss = PATHS[path]
    needs, server, client, (user, line), moves_file = PROGRAMS[program]
    missing = [need for need in needs if not shutil.which(need, path=os.environ["PATH"] + ":/usr/sbin")]
    if missing:
        return {"path": path, "program": program, "missing": missing}
    with tempfile.TemporaryDirectory(prefix="tlpeers") as name:
        place = pathlib.Path(name)
        (place / "in").mkdir()
        size = int(rate * (1 - loss) * user / line * seconds / 8)
        with open(place / "file", "wb") as file:
            file.write(os.urandom(size))
        (place / "psk").write_text(os.urandom(32).hex())
        os.chmod(place / "psk", 0o600)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", place / "key"], check=False)
        words = {"dir": name, "trunkline": TRUNKLINE, "bench": BENCH, "udt": UDT, "seconds": int(seconds), "kbps": int(rate * user / line * 0.97 / 1000)}
        me, limit = f"{sys.executable} {__file__} --child", 3 * seconds + (30 if "outage" in path else 0)
        far = f"{me} {name}/far {limit + 10} " + repr(server.format(**words))
        (place / "near.sh").write_text(f"sleep 1; exec {me} {name}/near {limit} " + repr(client.format(**words)))
        shell = f"{TRUNKLINE} shell {settings} --no-outside --best-effort --json --peer \"{far}\" -- sh {name}/near.sh"
        run = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, errors="replace")
        if not (place / "near").exists():
            return {"path": path, "program": program, "failed": run.stderr[-300:]}
        near = json.loads((place / "near").read_text())
        far = json.loads((place / "far").read_text()) if (place / "far").exists() else {"cpu": 0}
        came, took = delivered(place, near, moves_file)
        came = min(came, size) if moves_file else came
        statement = json.loads(run.stdout.strip().splitlines()[-1])
        entered = next(lane["entered_bytes"] for lane in statement["state"]["lanes"] if lane["name"] == "up")
        goodput = came * 8 / took
        return {
            "path": path,
            "program": program,
            "finished": near["status"] == 0,
            "seconds": round(took, 2),
            "share": round(goodput / (rate * (1 - loss) * user / line), 3),
            "redundancy": round(entered / came, 3) if came else None,
            # Of what had to be ended nobody counted the processor time.
            "cpu_s_per_GB": round((near["cpu"] + far["cpu"]) / came * 1e9, 2) if came and near["status"] == 0 else None,
            "valid": statement["valid"],
        }


def build_udt():
    """Builds the mover on UDT, if its library and a compiler are there."""
    if not pathlib.Path("/usr/include/udt/udt.h").exists() or not shutil.which("g++"):
        return
    pathlib.Path(UDT).parent.mkdir(parents=True, exist_ok=True)
    source = HERE / "peers/udt.cpp"
    subprocess.run(["g++", "-O2", "-o", UDT, source, "-ludt", "-lpthread"], check=True)


def main():
    if sys.argv[1:2] == ["--child"]:
        return child(sys.argv[4], sys.argv[2], float(sys.argv[3]))
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=20)
    options.add_argument("--rows", default=",".join(PATHS))
    options.add_argument("--programs", default=",".join(PROGRAMS))
    options.add_argument("--out")
    given = options.parse_args()
    build_udt()
    results = []
    for path in given.rows.split(","):
        for program in given.programs.split(","):
            results.append(one(path, program, given.seconds))
            print(json.dumps(results[-1]), flush=True)
    if given.out:
        pathlib.Path(given.out).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
