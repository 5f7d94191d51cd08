# SPDX-License-Identifier: BSD-3-Clause
#
# Many keys, and eight clients that scan them while others insert, delete, rename
# and expire keys. Each scan returns every key that stays and no name that never
# existed, and ends. KEYS, DBSIZE and RANDOMKEY are correct meanwhile. KEYS=1000000
# takes as many.

import re
import socket
import threading

from lib import crash, servers

KEYS = crash.amount("KEYS", 300000)
STAY = KEYS * 9 // 10
RENAMED = KEYS - STAY
CHURN = KEYS // 20
BATCH = 500
PAUSE_S = 0.01  # of clients that change keys: all share one GIL
FINE = {b"+OK", b":0", b":1", b"-ERR no such key"}
VALID = re.compile(rb"stay:\d{7}|(odd|even):\d{7}|churn[01]:\d*[02468]"
                   rb"|end[01]:\d*[02468]")


class Raw:
    """A connection that is as fast as Python allows: it splits replies at line
    ends, because no name has one."""

    def __init__(self, server):
        self.sock = socket.create_connection(server.address)
        self.sock.settimeout(60 * servers.time_factor())
        self.left = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def run(self, commands):
        """Sends inline commands; the reply to each is one line."""
        for at in range(0, len(commands), 5000):
            part = commands[at:at + 5000]
            self.sock.sendall(b"\r\n".join(part) + b"\r\n")
            bad = set(self.lines(len(part))) - FINE
            assert not bad, bad

    def lines(self, count):
        chunks, have = [self.left], self.left.count(b"\n")
        while have < count:
            chunk = self.sock.recv(1 << 20)
            assert chunk, "the server closed the connection"
            chunks.append(chunk)
            have += chunk.count(b"\n")
        parts = b"".join(chunks).split(b"\r\n", count)
        self.left = parts.pop()
        return parts

    def array(self, command):
        self.sock.sendall(command + b"\r\n")
        count = int(self.lines(1)[0][1:])
        return self.lines(2 * count)[1::2]

    def scan(self, cursor, count):
        self.sock.sendall(b"SCAN %s COUNT %d\r\n" % (cursor, count))
        head = self.lines(4)
        assert head[0] == b"*2", head
        return head[2], self.lines(2 * int(head[3][1:]))[1::2]

    def number(self, command):
        self.sock.sendall(command + b"\r\n")
        return int(self.lines(1)[0][1:])


def in_threads(jobs):
    problems = []

    def guarded(job):
        try:
            job()
        except BaseException as problem:  # pylint: disable=broad-except
            problems.append(problem)
            raise

    threads = [threading.Thread(target=guarded, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    return threads, problems


def fill(server):
    names = [b"stay:%07d" % i for i in range(STAY)] + \
        [b"even:%07d" % i for i in range(RENAMED)]

    def part(first):
        with Raw(server) as conn:
            conn.run([b"BF.RESERVE %s 0.5 1" % n for n in names[first::4]])

    threads, problems = in_threads([lambda i=i: part(i) for i in range(4)])
    for thread in threads:
        thread.join()
    assert not problems


def churn(server, stop, index):
    """Adds keys until most stripes have doubled their tables, and deletes
    them; it only uses even numbers."""
    first = number = 0
    comes = True
    with Raw(server) as conn:
        while not stop.wait(PAUSE_S):
            if comes:
                numbers = range(number, number + 2 * BATCH, 2)
                number += 2 * BATCH
                conn.run([b"BF.RESERVE churn%d:%d 0.5 1" % (index, n)
                          for n in numbers])
                comes = number - first < 2 * CHURN
            else:
                numbers = range(first, first + 2 * BATCH, 2)
                first += 2 * BATCH
                conn.run([b"DEL churn%d:%d" % (index, n) for n in numbers])
                comes = first >= number
        conn.run([b"DEL churn%d:%d" % (index, n)
                  for n in range(first, number, 2)])


def expire(server, stop, index):
    number = 0
    with Raw(server) as conn:
        while not stop.wait(PAUSE_S):
            numbers = range(number, number + 2 * BATCH, 2)
            conn.run([b"BF.RESERVE end%d:%d 0.5 1" % (index, n)
                      for n in numbers])
            conn.run([b"PEXPIRE end%d:%d %d" % (index, n, 1 + n % 97)
                      for n in numbers])
            number += 2 * BATCH


def rename(server, stop):
    """Renames keys, and then back."""
    at, names = 0, [b"even:%07d", b"odd:%07d"]
    with Raw(server) as conn:
        while not stop.wait(PAUSE_S):
            conn.run([b"RENAME %s %s" % (names[0] % i, names[1] % i)
                      for i in range(at, min(at + BATCH, RENAMED))])
            at += BATCH
            if at >= RENAMED:
                at = 0
                names.reverse()


def scan(server, count):
    seen = bytearray(STAY)
    others, calls, cursor = 0, 0, b"0"
    with Raw(server) as conn:
        while True:
            cursor, names = conn.scan(cursor, count)
            assert int(cursor) < 1 << 53
            for name in names:
                if name[:5] == b"stay:":
                    seen[int(name[5:])] = 1
                else:
                    assert VALID.fullmatch(name), name
                    others += 1
            calls += 1
            assert calls < 100 * KEYS // count + 100000
            if cursor == b"0":
                break
    missing = seen.count(0)
    assert missing == 0, "%d keys were not seen, the first is %d" % (
        missing, seen.index(0))
    assert others > 0


def look(server, stop):
    """Calls DBSIZE, RANDOMKEY and KEYS, as long as there is scanning."""
    rounds = 0
    with Raw(server) as conn:
        while not stop.wait(30 * PAUSE_S) or rounds < 2:
            size = conn.number(b"DBSIZE")
            assert KEYS - 1 <= size <= 2 * KEYS, size
            for _ in range(20):
                conn.sock.sendall(b"RANDOMKEY\r\n")
                assert VALID.fullmatch(conn.lines(2)[1])
            tens = conn.array(b"KEYS stay:000001?")
            assert sorted(tens) == [b"stay:000001%d" % i for i in range(10)]
            rounds += 1


def test_eight_scanners_see_all_keys_under_change(server):
    stop = threading.Event()

    fill(server)
    with Raw(server) as conn:
        assert conn.number(b"DBSIZE") == KEYS
    changers, bad_changers = in_threads(
        [lambda: churn(server, stop, 0), lambda: churn(server, stop, 1),
         lambda: expire(server, stop, 0), lambda: expire(server, stop, 1),
         lambda: rename(server, stop), lambda: look(server, stop)])
    scanners, bad_scanners = in_threads(
        [lambda c=c: scan(server, c)
         for c in (100, 300, 1000, 1000, 1000, 3000, 3000, 10000)])
    for thread in scanners:
        thread.join()
    stop.set()
    for thread in changers:
        thread.join()
    assert not bad_scanners, bad_scanners
    assert not bad_changers, bad_changers
    with Raw(server) as conn:
        servers.wait_until(lambda: conn.number(b"DBSIZE") == KEYS, 20,
                           "what had an end is gone")


def test_scan_of_a_type_knows_both_names(server):
    with server.conn() as conn:
        conn.call("BF.ADD", "k", "x")
        for name in ("bloomfltr", "MBbloom--", "mbbloom--"):
            assert conn.call("SCAN", "0", "TYPE", name)[1] == [b"k"]
        assert conn.call("SCAN", "0", "TYPE", "string")[1] == []
