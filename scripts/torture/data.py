"""The two ends of scripts/torture/data.sh: numbered blocks of known content, sent and checked.

send tcp|udp HOST BYTES     sends so many bytes
receive tcp|udp             receives until the sender is done, and prints what it found as JSON

A block is a slice of a pattern that its number picks, with the number in front: every wrong, missing, repeated or
displaced byte shows. A sender of datagrams keeps few in flight and learns from the receiver which have come, so that no
receive buffer overflows: what is missing was lost on the path.
"""

import json
import random
import select
import socket
import struct
import sys
import time

PORT = 5201
PATTERN = random.Random(1989).randbytes(1 << 22)
NUMBER = struct.Struct("!Q")
BLOCK = {"tcp": 1 << 18, "udp": 1400}
# Datagrams that may be on their way, and how long their absence is waited for.
WINDOW, PATIENCE = 96, 0.25
END = NUMBER.pack(2**64 - 1)


def content(number, size):
    start = number * 4099 % (len(PATTERN) - size)
    return NUMBER.pack(number) + PATTERN[start : start + size - NUMBER.size]


def send_tcp(host, total):
    with socket.create_connection((host, PORT)) as stream:
        for number in range(-(-total // BLOCK["tcp"])):
            stream.sendall(content(number, BLOCK["tcp"]))
        stream.shutdown(socket.SHUT_WR)
        stream.recv(1)


def receive_tcp():
    with socket.create_server(("", PORT)) as door:
        stream, _ = door.accept()
    size, buffer, got, wrong = BLOCK["tcp"], bytearray(BLOCK["tcp"]), 0, 0
    view, full = memoryview(buffer), 0
    with stream:
        while count := stream.recv_into(view[full:]):
            full += count
            if full == size:
                expected = content(got // size, size)
                if buffer != expected:
                    wrong += sum(a != b for a, b in zip(buffer, expected))
                got, full = got + size, 0
    return {"bytes": got + full, "wrong_bytes": wrong}


def send_udp(host, total):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wire:
        wire.connect((host, PORT))
        wire.setblocking(False)
        seen = 0
        for number in range(-(-total // BLOCK["udp"])):
            waited = time.monotonic()
            while number - seen >= WINDOW:
                if not select.select([wire], [], [], PATIENCE)[0]:
                    # The rest was lost, or the news of it.
                    seen = number
                    break
                seen = max(seen, news(wire))
                if time.monotonic() - waited > 60:
                    raise SystemExit("the other end does not answer")
            while True:
                try:
                    wire.send(content(number, BLOCK["udp"]))
                    break
                except BlockingIOError:
                    select.select([], [wire], [])
        for _ in range(40):
            try:
                wire.send(END)
            except ConnectionRefusedError:
                # The receiver has heard it and has left.
                break
            time.sleep(0.05)


def news(wire):
    try:
        return NUMBER.unpack(wire.recv(64))[0]
    except (BlockingIOError, ConnectionRefusedError):
        return 0


def receive_udp():
    size, sent = BLOCK["udp"], 0
    found = {"bytes": 0, "datagrams": 0, "wrong": 0, "duplicates": 0, "highest": -1}
    seen = bytearray(1 << 24)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wire:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        wire.bind(("", PORT))
        while True:
            data, peer = wire.recvfrom(65536)
            if data == END:
                break
            number = NUMBER.unpack_from(data)[0]
            found["datagrams"] += 1
            if number >= len(seen) * 8 or data != content(number, size):
                found["wrong"] += 1
                continue
            found["bytes"] += size
            found["duplicates"] += seen[number >> 3] >> (number & 7) & 1
            seen[number >> 3] |= 1 << (number & 7)
            found["highest"] = max(found["highest"], number)
            sent += 1
            if sent % 16 == 0:
                wire.sendto(NUMBER.pack(found["highest"]), peer)
    different = sum(byte.bit_count() for byte in seen)
    found["missing"] = found["highest"] + 1 - different
    return found


if __name__ == "__main__":
    what, how, *rest = sys.argv[1:]
    if what == "send":
        {"tcp": send_tcp, "udp": send_udp}[how](rest[0], int(rest[1]))
    else:
        print(json.dumps({"tcp": receive_tcp, "udp": receive_udp}[how]()))
