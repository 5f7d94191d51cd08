#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
#
# Measures how long a single command occupies a loop and its locks. For each case
# that other servers are known to be slow at, it shows the longest handler and the
# longest time under a lock from INFO, in CPU time of their thread, and the mark.
# It also measures the time in which the kernel clears pages at their first touch.
"""Measure the longest handlers and times under a lock."""

import argparse
import glob
import json
import mmap
import resource
import socket
import statistics
import sys
import tempfile
import threading
import time

import servers

MARK_USEC = 2000
MARK_LOOP_USEC = 10_000  # of what limits.md does not name
BATCH = 10_000
PAGE = 2 * 1024 * 1024
LAYERS = 1024


def request(*words):
    """One command as RESP."""
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        data = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
    return b"".join(parts)


class Peer:
    """A connection that sends prepared bytes and skips long replies."""

    def __init__(self, server):
        self.sock = socket.create_connection(("127.0.0.1", server.port))
        self.file = self.sock.makefile("rb", buffering=1 << 20)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.file.close()
        self.sock.close()

    def read(self):
        """Return one reply: a number, a text, or the length of an array."""
        line = self.file.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise SystemExit("the server says: " + rest.decode())
        if kind == b":":
            return int(rest)
        if kind in b"$=":
            if int(rest) < 0:
                return None
            return self.file.read(int(rest) + 2)[:-2]
        if kind == b"*":
            values = [self.read() for _ in range(int(rest))]
            return values if len(values) < 3 else len(values)
        return rest

    def call(self, *words):
        """Send one command and read its reply."""
        self.sock.sendall(request(*words))
        return self.read()

    def stream(self, pieces, replies):
        """Send all pieces while reading the replies."""
        reader = threading.Thread(
            target=lambda: [self.read() for _ in range(replies)])
        reader.start()
        for piece in pieces:
            self.sock.sendall(piece)
        reader.join()

    def stats(self):
        """Return the fields of INFO stats."""
        text = self.call("INFO", "stats").decode()
        return dict(line.split(":", 1) for line in text.splitlines()
                    if ":" in line)


def page_fault(pages):
    """Return the CPU time of the first touch of a huge page, in microseconds."""
    times = []
    with mmap.mmap(-1, (pages + 1) * PAGE,
                   flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_HUGEPAGE)
        for page in range(1, pages):
            start = time.thread_time_ns()
            memory[page * PAGE + PAGE // 2] = 1
            times.append((time.thread_time_ns() - start) / 1000)
    times.sort()
    return {"median": statistics.median(times),
            "p90": times[len(times) * 9 // 10], "longest": times[-1]}


class Bench:
    """The server and the results."""

    def __init__(self, server, quick):
        self.server = server
        self.peer = Peer(server)
        self.scale = 10 if quick else 1
        self.results = []

    def measure(self, case, act, note="", kind="", mark_usec=MARK_USEC):
        """Run the case and keep its times from INFO.

        KIND is "fault" if the kernel's page faults take most of the time,
        and "items", "merge" or "moment" for commands that are atomic by
        design."""
        self.peer.call("CONFIG", "RESETSTAT")
        start = time.monotonic()
        act()
        took_s = time.monotonic() - start
        stats = self.peer.stats()
        result = {
            "case": case,
            "handler_usec": int(stats["longest_handler_usec"]),
            "handler": stats["longest_handler"],
            "lock_usec": int(stats["longest_lock_usec"]),
            "lock": stats["longest_lock"],
            "mark_usec": mark_usec,
            "took_s": round(took_s, 3),
            "note": note,
            "kind": kind,
        }
        result["met"] = max(result["handler_usec"],
                            result["lock_usec"]) < mark_usec
        self.results.append(result)
        return result

    def cpu_usec(self):
        """Return the CPU time of the busiest thread of the server so far."""
        spent = []
        for path in glob.glob("/proc/%d/task/*/schedstat" % self.server.process.pid):
            with open(path, encoding="ascii") as file:
                spent.append(int(file.read().split()[0]) // 1000)
        return max(spent)

    def loop_of_pings(self, case, *words):
        """Send a command, then PINGs for a second: how much CPU time does a loop
        spend on others while one waits? The server has one loop then."""
        self.peer.call(*words)
        worst = 0
        until = time.monotonic() + 1
        while time.monotonic() < until:
            before = self.cpu_usec()
            self.peer.call("PING")
            worst = max(worst, self.cpu_usec() - before)
        self.results.append({
            "case": case, "handler_usec": worst, "handler": "others",
            "lock_usec": 0, "lock": "", "mark_usec": MARK_LOOP_USEC,
            "took_s": 1, "note": "CPU time between PING and its reply",
            "kind": "", "met": worst < MARK_LOOP_USEC})

    def call(self, case, *words, **how):
        """A case of one command."""
        data = request(*words)

        def act():
            self.peer.sock.sendall(data)
            self.peer.read()
        return self.measure(case, act, **how)


def large_filter(bench):
    """4 GiB: made, touched for the first time, gone."""
    fault = page_fault(256)
    note = ("the kernel clears 2 MiB pages at their first touch: {median:,.0f} "
            "us for one by itself (p90 {p90:,.0f}, longest {longest:,.0f}), "
            "and an item touches up to 3").format(**fault)
    capacity = 2_300_000_000 // bench.scale
    adds = 400
    peer = bench.peer
    peer.call("CONFIG", "SET", "bf.bloom-memory-usage-limit", "8gb")
    made = bench.call("BF.RESERVE of 4 GiB", "BF.RESERVE", "big", "0.001",
                      capacity)
    made["bytes"] = peer.call("BF.INFO", "big", "SIZE")
    pipeline = b"".join(request("BF.ADD", "big", i) for i in range(adds))
    bench.measure("first touch, 400 BF.ADD in a pipeline",
                  lambda: peer.stream([pipeline], adds), note, "fault")
    bench.call("first touch, BF.MADD of 400", "BF.MADD", "big",
               *range(adds, 2 * adds), note=note, kind="fault")
    bench.call("BF.RESET of 4 GiB", "BF.RESET", "big")
    bench.call("DEL of 4 GiB", "DEL", "big")
    return fault


def many_items(bench):
    """Long argument lists."""
    items = [b"item:%d" % i for i in range(1_000_000 // bench.scale)]
    some = items[:100_000]
    step = {"kind": "items", "mark_usec": len(some) // 5}
    bench.call("BF.MADD of 100,000 new items", "BF.MADD", "madd", *some, **step)
    bench.call("BF.MADD of 100,000 known items", "BF.MADD", "madd", *some,
               **step)
    bench.call("BF.MEXISTS of 100,000", "BF.MEXISTS", "madd", *some)
    bench.call("BF.INSERT of 100,000", "BF.INSERT", "insert", "CAPACITY",
               1_000_000, "ITEMS", *some, **step)
    bench.call("BF.MADD of 1,000,000", "BF.MADD", "million", *items,
               note="layers of 2 MiB and more grow with it: page faults",
               kind="items", mark_usec=len(items) // 5)
    bench.call("BF.MEXISTS of 1,000,000", "BF.MEXISTS", "million", *items)
    queue = b"".join(request("BF.ADD", "exec:%d" % i, "item")
                     for i in range(10_000))

    def transaction():
        bench.peer.call("MULTI")
        bench.peer.stream([queue], 10_000)
        bench.peer.call("EXEC")
    bench.measure("EXEC of 10,000 BF.ADD that create", transaction,
                  kind="moment", mark_usec=10_000 * 5)
    bench.measure("EXEC of 10,000 BF.ADD of known items", transaction,
                  kind="moment", mark_usec=10_000 * 5)
    bench.peer.call("BF.INSERT", "layers", "CAPACITY", 1, "EXPANSION", 1,
                    "ERROR", "0.01", "TIGHTENING", "0.999", "ITEMS",
                    *items[:LAYERS])
    bench.call("BF.MEXISTS of 100,000 in 1024 layers", "BF.MEXISTS", "layers",
               *items[-100_000:])
    bench.call("BF.COUNTNEW of 1,000,000 in 1024 layers", "BF.COUNTNEW",
               "layers", *items, note="its table of 8 MB is touched",
               kind="fault")
    bench.peer.call("FLUSHALL")


def large_copies(bench):
    """Filters of 120 MB, and names of 1 MB."""
    peer = bench.peer
    capacity = 60_000_000 // bench.scale
    peer.call("CONFIG", "SET", "proto-max-bulk-len", "512mb",
              "client-query-buffer-limit", "1gb", "client-output-buffer-limit",
              "normal 1gb 1gb 60")
    peer.call("BF.RESERVE", "large", "0.001", capacity)
    for first in range(0, 1_000_000, 50_000):
        peer.call("BF.MADD", "large", *range(first, first + 50_000))
    bench.call("COPY of 120 MB", "COPY", "large", "copy", kind="fault")
    payload = []

    def dump():
        peer.sock.sendall(request("DUMP", "large"))
        payload.append(peer.read())
    bench.measure("DUMP of 120 MB", dump, kind="moment", mark_usec=250_000)
    payload = payload[0]
    bench.call("RESTORE of 120 MB", "RESTORE", "restored", 0, payload,
               kind="fault")
    bench.call("BF.MERGE of 2 x 120 MB", "BF.MERGE", "merged", "large", "copy",
               kind="merge", mark_usec=100_000)
    for i in range(20):
        peer.call("BF.RESERVE", b"%02d" % i + b"a" * 1_000_000, "0.01", 10)
    bench.call("KEYS, 20 names of 1 MB, one star and 1000 letters", "KEYS",
               b"*" + b"a" * 1000, kind="names", mark_usec=10_000)
    bench.call("KEYS, the same, nothing matches", "KEYS",
               b"*" + b"a" * 1000 + b"b*", kind="names", mark_usec=10_000)
    peer.call("FLUSHALL")


def many_keys(bench):
    """A million names."""
    count = 1_000_000 // bench.scale
    pieces = [b"".join(request("BF.ADD", "key:%d" % key, "item")
                       for key in range(first, first + BATCH))
              for first in range(0, count, BATCH)]
    peer = bench.peer
    bench.measure("a growing table, 1,000,000 new keys",
                  lambda: peer.stream(pieces, count),
                  "the allocator's fresh pages are in it")
    bench.call("KEYS *", "KEYS", "*")
    bench.call("KEYS with a pattern", "KEYS", "*7*")
    bench.call("SCAN COUNT 1,000,000", "SCAN", 0, "COUNT", 1_000_000)
    bench.call("RANDOMKEY", "RANDOMKEY")
    bench.call("DBSIZE", "DBSIZE")
    bench.call("INFO everything", "INFO", "everything")
    bench.call("SWAPDB", "SWAPDB", 0, 1)
    bench.call("SWAPDB back", "SWAPDB", 0, 1)
    bench.call("EXISTS of 100,000 names", "EXISTS",
               *["key:%d" % key for key in range(100_000)])
    bench.call("UNLINK of 100,000 names", "UNLINK",
               *["key:%d" % key for key in range(100_000)])

    def flush():
        peer.call("FLUSHALL")
        until = time.monotonic() + 2 / bench.scale
        while time.monotonic() < until:  # its memory comes back meanwhile
            peer.call("PING")
            time.sleep(0.005)
    bench.measure("FLUSHALL of 1,000,000 keys", flush)


def many_layers(bench):
    """Filters that grow by one small layer at a time, in a plan and as they are."""
    peer = bench.peer
    plan = ("BF.PLAN", "0.01", 100, "EXPANSION", 1)
    bench.call("BF.PLAN, EXPANSION 1", *plan, mark_usec=MARK_LOOP_USEC)
    items = [b"item:%d" % i for i in range(100 * LAYERS // bench.scale)]
    peer.call("BF.INSERT", "layers", "CAPACITY", 100, "EXPANSION", 1, "ERROR",
              "0.01", "TIGHTENING", "0.999", "ITEMS", *items)
    bench.call("BF.STATS of 1024 layers", "BF.STATS", "layers",
               mark_usec=MARK_LOOP_USEC)
    clients = [Peer(bench.server) for _ in range(50)]

    def all_plan():
        for client in clients:
            client.sock.sendall(request(*plan))
        for client in clients:
            client.read()
    bench.measure("BF.PLAN of 50 clients", all_plan, mark_usec=MARK_LOOP_USEC)
    for client in clients:
        client.sock.close()
    peer.call("FLUSHALL")


def many_rights(bench):
    """Users with many rules, long keys and long passwords."""
    peer = bench.peer
    count = 100_000 // bench.scale
    long = {"mark_usec": MARK_LOOP_USEC}
    bench.call("ACL SETUSER of 100,000 patterns", "ACL", "SETUSER", "many",
               *["~user:%d:*" % i for i in range(count)], **long)
    bench.call("ACL SETUSER of 100,000 passwords", "ACL", "SETUSER", "many",
               *[">%d" % i for i in range(count)], **long)
    bench.call("ACL SAVE of both", "ACL", "SAVE", **long)
    bench.call("ACL LOAD of both", "ACL", "LOAD", **long)
    peer.call("ACL", "DELUSER", "many")
    selector = " ".join("~user:%d:*" % i for i in range(count))
    bench.call("ACL SETUSER of a selector of 100,000", "ACL", "SETUSER", "many",
               "(%s)" % selector, **long)
    bench.call("ACL SAVE of it", "ACL", "SAVE", **long)
    bench.call("ACL LOAD of it", "ACL", "LOAD", **long)
    peer.call("ACL", "DELUSER", "many")
    peer.call("ACL", "SETUSER", "hundred", "on", ">p", "+@all",
              *["~%02d:*" % i for i in range(99)], "~key:*")
    peer.call("ACL", "SETUSER", "hard", "on", ">p", "+@all",
              "~user:*:[0-9]*")
    password = b"x" * (60_000_000 // bench.scale)
    peer.call("CONFIG", "SET", "proto-max-bulk-len", "512mb",
              "client-query-buffer-limit", "1gb")
    bench.call("ACL SETUSER of a password of 60 MB", "ACL", "SETUSER", "long",
               "on", "+@all", b">" + password, **long)
    bench.call("AUTH of 60 MB", "AUTH", "long", password, **long)
    names = ["key:%d" % i for i in range(1_000_000 // bench.scale)]
    keys = [b"user:" + b":" * 60_000 + b"1"] * 1_000
    peer.call("AUTH", "default", "")
    for user, words in (("hundred", names), ("hard", keys)):
        with Peer(bench.server) as limited:
            limited.call("AUTH", user, "p")
            data = request("EXISTS", *words)

            def act():
                limited.sock.sendall(data)
                limited.read()
            bench.measure("EXISTS of %d keys, user %s" % (len(words), user),
                          act, **long)
    peer.call("ACL", "DELUSER", "hundred", "hard", "long")


def many_trackers(bench, how):
    """A write that 8,000 clients hear about. With a journal the pushes wait for
    it, and are released together."""
    address = ("127.0.0.1", bench.server.port)
    clients = []
    try:
        for _ in range(8_000 // bench.scale):
            clients.append(socket.create_connection(address))
            clients[-1].sendall(b"HELLO 3\r\nCLIENT TRACKING ON BCAST\r\n")
        for client in clients:
            data = b""
            while not data.endswith(b"+OK\r\n"):
                data += client.recv(4096)
        bench.loop_of_pings("a write, 8,000 clients in BCAST tracking" + how,
                            "BF.ADD", "tracked", "x")
        bench.loop_of_pings("FLUSHALL, the same" + how, "FLUSHALL")
    finally:
        for client in clients:
            client.close()


def many_clients(bench):
    """Ten thousand connections."""
    count = 10_000 // bench.scale
    address = ("127.0.0.1", bench.server.port)
    clients = []
    try:
        for _ in range(count):
            clients.append(socket.create_connection(address))
        for client in clients:
            client.sendall(b"PING\r\n")
        for client in clients:
            client.recv(64)
        bench.call("CLIENT LIST, 10,000 clients", "CLIENT", "LIST")
        bench.call("CLIENT LIST TYPE pubsub", "CLIENT", "LIST", "TYPE",
                   "pubsub")
        bench.call("CLIENT KILL ADDR of nobody", "CLIENT", "KILL", "ADDR",
                   "127.0.0.1:1", "SKIPME", "no", "LADDR", "127.0.0.1:1")
        bench.call("CLIENT KILL TYPE normal", "CLIENT", "KILL", "TYPE",
                   "normal")
    finally:
        for client in clients:
            client.close()


def raise_descriptors():
    """Raise the limit of descriptors for ten thousand clients; the server
    inherits it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 24_000
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def run(server_binary, quick=False):
    """Run all cases. Return {"fault_usec": ..., "cases": [...]}."""
    raise_descriptors()
    options = ["--save", "", "--slowlog-log-slower-than", "-1",
               "--maxclients", "10100"]
    with tempfile.NamedTemporaryFile(suffix=".acl") as aclfile, \
            servers.Bloomery(server_binary, options=options + [
                "--aclfile", aclfile.name]) as server:
        bench = Bench(server, quick)
        with bench.peer:
            fault = large_filter(bench)
            many_items(bench)
            large_copies(bench)
            many_keys(bench)
            many_layers(bench)
            many_rights(bench)
            many_clients(bench)
    for journal in ("no", "yes"):
        one_loop = options + ["--threads", "1", "--appendonly", journal]
        with servers.Bloomery(server_binary, options=one_loop) as server:
            one = Bench(server, quick)
            with one.peer:
                many_trackers(one, " (journal)" * (journal == "yes"))
            bench.results += one.results
    return {"fault_usec": fault, "cases": bench.results}


def show(found):
    """Print one line for each case."""
    print("the longest handler and the longest hold of a lock, CPU time in "
          f"us; mark {MARK_USEC}")
    for case in found["cases"]:
        missed = "" if case["met"] else "  MISSED"
        print(f"{case['case']:40} {case['handler_usec']:7} "
              f"{case['handler']:12} {case['lock_usec']:7} "
              f"{case['lock']:12}{missed}")
        if case["note"] and missed:
            print(f"{'':8}{case['note']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server",
                        default=str(servers.DEFAULT_BUILD / "bloomery-server"))
    parser.add_argument("--quick", action="store_true",
                        help="a tenth of everything")
    parser.add_argument("--json", metavar="FILE", help="write the figures there too")
    options = parser.parse_args()
    servers.exit_on_sigterm()
    found = run(options.server, options.quick)
    show(found)
    if options.json is not None:
        with open(options.json, "w", encoding="ascii") as file:
            json.dump(found, file, indent=1)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
