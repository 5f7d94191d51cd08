#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
#
# Measures the memory of filters, as three tables: bits per item by error rate,
# compared with the minimum of a Bloom filter; the bytes of one small default
# filter; and the memory that stays resident after a million of them are deleted.
# Memory does not depend on the machine's speed, so these are absolute figures.
# Requests are prebuilt bytes on plain sockets, because a slower client would
# dominate the duration.
"""Measure the memory of filters, and how much of it is returned."""

import contextlib
import itertools
import json
import math
import pathlib
import socket
import statistics
import sys
import time

import servers

MIB = 1 << 20
ITEMS = 1_000_000       # of one filter
KEYS = 1_000_000        # small filters
WAIT_S = 15
RATES = (0.1, 0.05, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
ASKED_FROM = 1e-4       # lower rates have too few false answers to count
MARK_RATE = 0.01        # the overhead is bounded for rates up to this one
MARK_OVERHEAD = 0.11
MARK_SMALL_BYTES = 128 + 150
MARK_LEFT_FACTOR = 1.2
MARK_LEFT_BYTES = 16 * MIB
WAYS = ("DEL", "FLUSHALL", "PEXPIRE")
ITEMS_A_COMMAND = 1000
PART_BYTES = 64 * 1024  # in flight; any server buffers as much
TIMEOUT_SECONDS = 120


def encode(*words):
    """Return one command as bytes."""
    words = [word if isinstance(word, bytes) else str(word).encode()
             for word in words]
    return b"*%d\r\n" % len(words) + b"".join(
        b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


class Client:
    """One connection."""

    def __init__(self, server):
        self.socket = socket.create_connection(("127.0.0.1", server.port),
                                               TIMEOUT_SECONDS)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.socket.close()

    def receive(self):
        """Return the bytes that have arrived."""
        data = self.socket.recv(1 << 20)
        if not data:
            raise SystemExit("closed by the server")
        return data

    def call(self, *words):
        """Send one command; return the line or the bulk text it replies."""
        self.socket.sendall(encode(*words))
        reply = b""
        while True:
            reply += self.receive()
            head, end, body = reply.partition(b"\r\n")
            if reply[:1] == b"-":
                raise SystemExit(f"{words[0]}: {head.decode()}")
            if reply[:1] != b"$":
                if end:
                    return head[1:].decode()
            elif end and len(body) >= int(head[1:]) + 2:
                return body[:int(head[1:])].decode()

    def pipeline(self, parts):
        """Send parts, which are (bytes, lines they reply); count the `:1`.

        The server already has the next part while the client reads the replies
        to one."""
        replies = bytearray()
        lines = 0  # still to come
        for request, due in itertools.chain(parts, [(b"", 0)]):
            self.socket.sendall(request)
            while lines > 0:
                data = self.receive()
                replies += data
                lines -= data.count(b"\n")
            lines += due
        if replies.startswith(b"-") or b"\n-" in replies:
            at = (b"\n" + replies).index(b"\n-")
            raise SystemExit(replies[at:].partition(b"\r\n")[0].decode())
        return replies.count(b":1\r\n")


def resident(server):
    """Return the resident bytes of a server."""
    text = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in text.splitlines()
                if line.startswith("VmRSS:"))


def used_memory(client):
    """Return the memory that a server reports."""
    return next(int(line.split(":")[1])
                for line in client.call("INFO", "memory").splitlines()
                if line.startswith("used_memory:"))


# ---- bits per item ---------------------------------------------------------

def item_parts(name, prefix, count):
    """Return the commands that name `count` items of the filter `bench`."""
    head = b"*%d\r\n" % (ITEMS_A_COMMAND + 2) + encode(
        name, "bench").partition(b"\r\n")[2]
    return [(head + b"".join(b"$11\r\n%s%010d\r\n" % (prefix, number)
                             for number in range(first,
                                                 first + ITEMS_A_COMMAND)),
             ITEMS_A_COMMAND + 1)
            for first in range(0, count, ITEMS_A_COMMAND)]


def bits_per_item(binary, options, items):
    """Return a row for each error rate."""
    rows = []
    adds = item_parts("BF.MADD", b"p", items)
    asks = item_parts("BF.MEXISTS", b"a", items)
    with servers.Bloomery(binary, options) as server, Client(server) as client:
        for rate in RATES:
            client.call("BF.RESERVE", "bench", f"{rate:.7f}", items)
            size = int(client.call("BF.INFO", "bench", "SIZE"))
            bits = size * 8 / items
            least = math.log2(1 / rate) / math.log(2)
            row = {"rate": rate, "bits": bits, "least": least,
                   "overhead": bits / least - 1, "met": None,
                   "measured": None}
            if rate <= MARK_RATE:
                row["met"] = row["overhead"] <= MARK_OVERHEAD
            if rate >= ASKED_FROM:
                client.pipeline(adds)
                row["measured"] = client.pipeline(asks) / items
            client.call("DEL", "bench")
            rows.append(row)
    return rows


def print_bits(rows, items):
    """Print the first table."""
    print(f"bits per item: BF.RESERVE for {items:,} items, and as many absent "
          "ones asked for; the least is 1.44 log2(1/rate)")
    print(f"{'error rate':>12}{'bits':>9}{'least':>9}{'overhead':>10}"
          f"{'mark':>8}{'':>8}{'measured rate':>16}")
    for row in rows:
        mark = "" if row["met"] is None else f"{100 * MARK_OVERHEAD:.0f} %"
        asked = ("" if row["measured"] is None
                 else f"{row['measured']:.6f}")
        line = (f"{row['rate']:>12g}{row['bits']:>9.2f}{row['least']:>9.2f}"
                f"{100 * row['overhead']:>8.1f} %{mark:>8}"
                f"{verdict(row['met']):>8}{asked:>16}")
        print(line.rstrip())


# ---- small filters, and what they leave behind -----------------------------

def key_parts(count, *words):
    """Return pipelines with one command for each key, which None stands for."""
    before, after = (
        b"".join(b"$%d\r\n%s\r\n" % (len(word), word.encode())
                 for word in part)
        for part in (words[:words.index(None)], words[words.index(None) + 1:]))
    form = (b"*%d\r\n" % len(words) + before + b"$11\r\nkey:%07d\r\n" +
            after)
    step = PART_BYTES // len(form)
    for first in range(0, count, step):
        numbers = range(first, min(first + step, count))
        yield b"".join(form % number for number in numbers), len(numbers)


def delete_all(client, way, count):
    """Delete all keys in one of the ways."""
    if way == "DEL":
        client.pipeline(key_parts(count, "DEL", None))
    elif way == "FLUSHALL":
        client.call("FLUSHALL")
    else:
        client.pipeline(key_parts(count, "PEXPIRE", None, "1"))


def fill_and_delete(server, way, count):
    """Return the memory of a server before, with and after `count` filters."""
    with Client(server) as client:
        row = {"way": way, "keys": count, "start_rss": resident(server),
               "start_used": used_memory(client)}
        client.pipeline(key_parts(count, "BF.ADD", None, "item"))
        row["full_rss"] = resident(server)
        row["full_used"] = used_memory(client)
        delete_all(client, way, count)
    row["gone_at"] = time.monotonic()
    return row


def settle(server, row, wait_s):
    """Wait until the keys are gone for wait_s, and complete the row."""
    time.sleep(max(0.0, row.pop("gone_at") + wait_s - time.monotonic()))
    row["left_rss"] = resident(server)
    with Client(server) as client:
        row["left_used"] = used_memory(client)
        row["left_keys"] = int(client.call("DBSIZE"))
    row["after_s"] = wait_s
    row["allowed_rss"] = (MARK_LEFT_FACTOR * row["start_rss"] +
                          MARK_LEFT_BYTES)
    row["met"] = row["left_keys"] == 0 and row["left_rss"] <= row["allowed_rss"]


def small_filters(binary, options, keys, wait_s):
    """Return a row for each way to delete keys. The servers wait at the same
    time, because they are idle then."""
    rows = []
    with contextlib.ExitStack() as stack:
        started = []
        for way in WAYS:
            server = stack.enter_context(servers.Bloomery(binary, options))
            rows.append(fill_and_delete(server, way, keys))
            started.append(server)
        for server, row in zip(started, rows):
            settle(server, row, wait_s)
    return rows


def small_bytes(rows):
    """Return the bytes of one filter: the median over the servers."""
    rss, used = (
        statistics.median((row[f"full_{what}"] - row[f"start_{what}"]) /
                          row["keys"] for row in rows)
        for what in ("rss", "used"))
    return {"rss": rss, "used": used, "mark": MARK_SMALL_BYTES,
            "met": rss <= MARK_SMALL_BYTES}


def print_small(small, rows):
    """Print the second and the third table."""
    print(f"\na small default filter: BF.ADD of one item to each of "
          f"{rows[0]['keys']:,} names of 11 bytes")
    print(f"{'':>12}{'bytes':>9}{'mark':>9}")
    print(f"{'resident':>12}{small['rss']:>9.1f}{small['mark']:>9}"
          f"{verdict(small['met']):>8}")
    print(f"{'used_memory':>12}{small['used']:>9.1f}")
    print(f"\nwhat stays when they are gone, in MiB; resident "
          f"{rows[0]['after_s']} s later, the mark is "
          f"{MARK_LEFT_FACTOR} x start + {MARK_LEFT_BYTES // MIB}")
    print(f"{'gone by':>12}{'start':>9}{'full':>9}{'left':>9}{'mark':>9}"
          f"{'':>8}{'used_memory: start, full, left':>34}")
    for row in rows:
        rss = "".join(f"{row[key] / MIB:>9.1f}" for key in (
            "start_rss", "full_rss", "left_rss", "allowed_rss"))
        used = ", ".join(f"{row[key] / MIB:.1f}" for key in (
            "start_used", "full_used", "left_used"))
        print(f"{row['way']:>12}{rss}{verdict(row['met']):>8}{used:>34}")


# ---- all of it -------------------------------------------------------------

def verdict(met):
    """Return the text about a mark."""
    return "" if met is None else "met" if met else "MISSED"


def measure(binary, options=(), quick=False):
    """Return everything as plain data."""
    scale = 10 if quick else 1
    rows = small_filters(binary, options, KEYS // scale, WAIT_S)
    return {"items": ITEMS // scale,
            "bits": bits_per_item(binary, options, ITEMS // scale),
            "small": small_bytes(rows), "left": rows}


def print_all(figures):
    """Print the three tables."""
    print_bits(figures["bits"], figures["items"])
    print_small(figures["small"], figures["left"])


def marks_met(figures):
    """Return whether no mark is missed."""
    rows = [*figures["bits"], figures["small"], *figures["left"]]
    return all(row["met"] is not False for row in rows)


def parse_args():
    """Return the command line; unknown options are for the server."""
    parser = servers.arguments(
        __doc__, "a tenth of it: a smoke test, no figures",
        epilog="Options that are not listed are passed to the server.")
    parser.add_argument("--server", type=pathlib.Path,
                        help="another binary to measure")
    parser.add_argument("--check", action="store_true",
                        help="exit 1 if a mark is missed")
    return parser.parse_known_args()


def main():
    args, options = parse_args()
    servers.exit_on_sigterm()
    figures = measure(args.server or args.build / "bloomery-server", options,
                      args.quick)
    print_all(figures)
    if args.json is not None:
        args.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 1 if args.check and not marks_met(figures) else 0


if __name__ == "__main__":
    sys.exit(main())
