# SPDX-License-Identifier: BSD-3-Clause
#
# Everything at once: clients change keys, subscribe, track, run MONITOR, pause and
# kill each other, read slowly or not at all, and disconnect. The test does not check
# their replies. The server must survive, answer a new client, free the resources of
# disconnected clients, and stop without a sanitizer report.

import os
import random
import socket
import threading
import time

import pytest

from lib import resp, servers

SECONDS = float(os.environ.get("SECONDS", "4"))
KEYS = ["k%d" % i for i in range(30)]
ABORT = b"\1\0\0\0\0\0\0\0"


def commands(chance):
    """Returns one packet: requests of one kind, sometimes many."""
    key, other = chance.choice(KEYS), chance.choice(KEYS)
    times = chance.choice([1, 1, 5, 20])
    item = str(chance.random())
    return chance.choice([
        [["BF.ADD", key, item]] * times,
        [["BF.EXISTS", key, item]] * times,
        [["BF.MADD", key] + [str(chance.random()) for _ in range(50)]],
        [["BF.MERGE", key, other]], [["BF.RESET", key]],
        [["BF.RESERVE", key, "0.01", "100", "DELETABLE"]],
        [["BF.RESERVE", key, "0.01", "100", "AGEING", "1"]],
        [["BF.MDEL", key, "x", "a", item]], [["BF.DEL", key, "x"]] * times,
        [["BF.COUNTNEW", key, "a", "b"]], [["BF.INFO", key]],
        [["MULTI"], ["BF.ADD", key, "x"], ["RENAME", key, other],
         ["PUBLISH", "a", "m"], ["EXEC"]],
        [["WATCH", key], ["MULTI"], ["BF.CARD", key], ["EXEC"]],
        [["SUBSCRIBE", "a", "b", key]], [["PSUBSCRIBE", "*"]], [["UNSUBSCRIBE"]],
        [["PUNSUBSCRIBE"]], [["SSUBSCRIBE", "s"]], [["SUNSUBSCRIBE"]],
        [["SPUBLISH", "s", item]] * times,
        [["PUBLISH", "a", "x" * chance.choice([1, 100, 20000])]] * times,
        [["CLIENT", "TRACKING", "ON"]], [["CLIENT", "TRACKING", "OFF"]],
        [["CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "k1"]],
        [["CLIENT", "TRACKING", "ON", "OPTIN", "NOLOOP"]],
        [["CLIENT", "CACHING", "YES"], ["BF.CARD", key]],
        [["CLIENT", "LIST"]], [["MONITOR"]], [["RESET"]],
        [["CLIENT", "KILL", "TYPE", "pubsub"]],
        [["CLIENT", "KILL", "ID", chance.randint(1, 500)]],
        [["CLIENT", "UNBLOCK", chance.randint(1, 500)]],
        [["CLIENT", "PAUSE", "5", chance.choice(["WRITE", "ALL"])]],
        [["CLIENT", "UNPAUSE"]], [["WAIT", "1", "1"]],
        [["FLUSHALL"]], [["SWAPDB", "0", "1"]], [["MOVE", key, "1"]],
        [["COPY", key, other, "REPLACE"]], [["DEL", key, other]],
        [["EXPIRE", key, "1"]], [["PEXPIRE", key, chance.randint(1, 50)]],
        [["CONFIG", "SET", "notify-keyspace-events", chance.choice(["KEA", ""])]],
        [["CONFIG", "SET", "slowlog-log-slower-than", chance.choice(["0", "-1"])]],
        [["CONFIG", "SET", "maxmemory", chance.choice(["8mb", "64mb"])]],
        [["CONFIG", "SET", "dialect", chance.choice(["redis", "valkey"])]],
        [["INFO", "everything"]], [["SLOWLOG", "GET"]], [["LATENCY", "HISTOGRAM"]],
        [["SCAN", "0"]], [["KEYS", "*"]], [["RANDOMKEY"]], [["DEBUG", "DIGEST"]],
        [["MEMORY", "STATS"]], [["ACL", "LOG"]], [["AUTH", "x", "y"]],
        [["PUBSUB", "CHANNELS"]], [["COMMAND", "DOCS"]],
    ])


def read_a_little(conn):
    conn.sock.settimeout(0.002)
    try:
        while conn.sock.recv(1 << 16):
            pass
    except (TimeoutError, socket.timeout):
        pass
    conn.sock.settimeout(conn.timeout)


def one_life(server, chance):
    """Runs one connection to one of its possible ends."""
    try:
        with server.conn(chance.choice([2, 3])) as conn:
            for _ in range(chance.randint(1, 30)):
                conn.send(b"".join(resp.command(*c) for c in commands(chance)))
                if chance.random() < 0.3:
                    read_a_little(conn)
            if chance.random() < 0.5:
                conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT)
    except (OSError, resp.Closed, resp.Malformed):
        pass  # another client has killed it


def run_crowd(server, seed, seconds):
    end = time.monotonic() + seconds

    def live(number):
        chance = random.Random("%d %d" % (seed, number))
        while time.monotonic() < end:
            one_life(server, chance)

    threads = [threading.Thread(target=live, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("options", [
    (), ("--appendonly", "yes", "--appendfsync", "always"),
], ids=["memory", "journal"])
def test_everything_at_once(start_server, options):
    seed = int(os.environ.get("SEED") or random.randrange(1 << 32))
    print("SEED=%d" % seed)
    server = start_server("--enable-debug-command", "yes", "--maxmemory", "64mb",
                          "--maxmemory-policy", "allkeys-lru", *options)
    run_crowd(server, seed, SECONDS)
    with server.conn() as conn:
        assert conn.call("CLIENT", "UNPAUSE") == b"OK"
        assert conn.call("PING") == b"PONG"
        servers.wait_until(
            lambda: conn.call("CLIENT", "LIST").count(b"\n") == 1,
            what="all others are gone")
        assert conn.call("PUBSUB", "CHANNELS") == []
        assert conn.call("PUBSUB", "NUMPAT") == 0
        info = conn.call("INFO").decode()
        for line in ("blocked_clients:0", "pubsub_clients:0",
                     "tracking_clients:0", "watching_clients:0",
                     "clients_in_multi:0"):
            assert line in info.split("\r\n"), line


def test_an_event_when_the_last_client_of_a_thread_is_gone(start_server):
    """Expiry runs between the clients' batches, and may belong to no
    client."""
    server = start_server("--notify-keyspace-events", "Ex", threads=1)
    with server.conn() as listener:
        listener.call("SUBSCRIBE", "__keyevent@0__:expired")
        with server.conn() as conn:
            conn.call("BF.ADD", "k", "x")
            conn.call("PEXPIRE", "k", 100)
        assert listener.read() == [b"message", b"__keyevent@0__:expired", b"k"]
