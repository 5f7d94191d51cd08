# SPDX-License-Identifier: BSD-3-Clause
#
# Commands of very many items work in parts: others are served in between, see
# what is done so far, and may take the key away; what was answered, or seen, is
# there after a kill -9. In a transaction they are one piece. Also: CLIENT LIST
# while clients come and go, and what INFO says was longest.

import threading

import pytest

from lib import crash, resp, servers

COUNT = 300_000
ITEMS = [b"item:%d" % i for i in range(COUNT)]


class Long:
    """A connection that runs one long command, and reads its reply when it is
    asked to: arrays of :0 and :1 are long, so they are looked at as bytes."""

    def __init__(self, address, *words):
        self.conn = resp.Conn(address, timeout=120 * servers.time_factor())
        self.request = resp.command(*words)
        self.reply = b""
        self.thread = threading.Thread(target=self.run)

    def run(self):
        sock = self.conn.sock
        self.conn.send(self.request)
        while not self.ends():
            self.reply += sock.recv(1 << 20)

    def ends(self):
        """An array of integers, perhaps with an error as its last element."""
        if self.reply[:1] == b"-":
            return self.reply.endswith(b"\r\n")
        head, found, body = self.reply.partition(b"\r\n")
        if not found:
            return False
        count = int(head[1:]) if found else -1
        if len(body) == 4 * count:
            return True
        return len(body) > 4 * (count - 1) and body.endswith(b"\r\n") and \
            body[4 * (count - 1):4 * (count - 1) + 1] == b"-"

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.thread.join(120 * servers.time_factor())
        self.conn.close()

    def runs(self):
        return self.thread.is_alive()

    def answers(self):
        """The answers as a string of 0 and 1, and the error or None."""
        self.thread.join(120 * servers.time_factor())
        head, _, body = self.reply.partition(b"\r\n")
        count = int(head[1:])
        if len(body) == 4 * count:
            return body[1::4], None
        cut = 4 * (count - 1)
        return body[:cut][1::4], body[cut:].decode().strip()


def watch(conn, long, key="k"):
    """What BF.CARD said, each number once, while the command ran."""
    seen = []
    while long.runs():
        card = conn.call("BF.CARD", key)
        if not seen or seen[-1] != card:
            seen.append(card)
    return seen


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("words", [
    ("BF.MADD", "k"),
    ("BF.INSERT", "k", "CAPACITY", 2 * COUNT, "ERROR", "0.001", "ITEMS"),
], ids=["madd", "insert"])
def test_others_see_it_grow(start_server, words, threads):
    server = start_server(threads=threads)
    with server.conn() as conn:
        for _ in range(5):
            with Long(server.address, *words, *ITEMS) as long:
                seen = watch(conn, long)
            answers, error = long.answers()
            assert error is None and len(answers) == COUNT
            assert answers.count(b"1") == conn.call("BF.CARD", "k")
            assert seen == sorted(seen)
            if any(0 < card < answers.count(b"1") for card in seen):
                break
            conn.call("DEL", "k")
        else:
            raise AssertionError("never seen half done")
        with Long(server.address, "BF.MEXISTS", "k", *ITEMS) as long:
            pass
        assert long.answers() == (b"1" * COUNT, None)
        with Long(server.address, "BF.MEXISTS", "none", *ITEMS) as long:
            pass
        assert long.answers() == (b"0" * COUNT, None)
        # The command counts once, however often it paused.
        stats = crash.info(conn, "commandstats")
        name = "cmdstat_" + words[0]
        assert stats["cmdstat_BF.MEXISTS"].startswith("calls=2,")
        assert int(stats[name].split(",")[0][6:]) <= 5


def test_a_transaction_is_one_piece(start_server):
    server = start_server(threads=4)
    with server.conn() as conn, server.conn() as other:
        conn.call("MULTI")
        conn.call("BF.MADD", "k", *ITEMS[:100_000])
        conn.send(resp.command("EXEC"))
        seen = {other.call("BF.CARD", "k")}
        reply = conn.read()
        seen.add(other.call("BF.CARD", "k"))
        assert len(reply) == 1 and len(reply[0]) == 100_000
        assert seen <= {0, sum(reply[0])}
        # Nothing could be in between, and INFO says who that was.
        stats = crash.info(conn, "stats")
        assert stats["longest_handler"] == "exec"
        assert stats["longest_lock"] == "exec"
        assert int(stats["longest_handler_usec"]) > 2000
        conn.call("CONFIG", "RESETSTAT")
        stats = crash.info(conn, "stats")
        assert int(stats["longest_handler_usec"]) < 2000
        assert stats["longest_lock"] != "exec"


def interfere(conn, long, how):
    """Calls it until the long command is done; how often."""
    calls = 0
    while long.runs():
        if conn.call("BF.CARD", "k") > 0:
            conn.call(*how)
            calls += 1
    return calls


@pytest.mark.parametrize("how", [("DEL", "k"), ("FLUSHALL",),
                                 ("PEXPIRE", "k", 1), ("BF.RESET", "k")],
                         ids=lambda how: how[0])
def test_the_key_may_go_while_items_are_added(tmp_path, how):
    with crash.Store("--appendonly", "yes", "--appendfsync", "always",
                     "--threads", "2") as store:
        store.start()
        with store.conn() as conn:
            with Long(store.address(), "BF.MADD", "k", *ITEMS) as long:
                assert interfere(conn, long, how) > 0
            answers, error = long.answers()
            assert error is None and len(answers) == COUNT
            conn.call("BF.ADD", "k", "last")
            before = conn.call("BF.CARD", "k"), conn.call("DUMP", "k")
            assert 0 < before[0] <= COUNT + 1
        store.kill()
        store.start()
        with store.conn() as conn:
            assert (conn.call("BF.CARD", "k"), conn.call("DUMP", "k")) == before
        store.assert_healthy()


def test_nocreate_ends_the_array_when_the_key_has_gone(start_server):
    server = start_server("--appendonly", "yes", threads=2)
    with server.conn() as conn:
        for _ in range(5):
            conn.call("BF.RESERVE", "k", "0.01", 2 * COUNT)
            with Long(server.address, "BF.INSERT", "k", "NOCREATE", "ITEMS",
                      *ITEMS) as long:
                servers.wait_until(
                    lambda: conn.call("BF.CARD", "k") > 0 or not long.runs(),
                    60, "it began", 0)
                gone = conn.call("DEL", "k")
            answers, error = long.answers()
            assert gone == 1 and conn.call("EXISTS", "k") == 0
            if error is not None:
                break
        assert error == "-ERR not found" and 0 < len(answers) < COUNT
        assert conn.call("PING") == b"PONG"


@pytest.mark.parametrize("words", [
    ("BF.MADD", "k"), ("BF.INSERT", "k", "CAPACITY", 1000, "ITEMS")],
    ids=["madd", "insert"])
def test_what_was_seen_survives_a_kill(words):
    with crash.Store("--appendonly", "yes", "--appendfsync", "always") as store:
        store.start()
        with store.conn() as conn:
            long = Long(store.address(), *words, *ITEMS)
            long.conn.send(long.request)
            card = servers.wait_until(lambda: conn.call("BF.CARD", "k"), 60,
                                      "items come", 0)
            for _ in range(20):
                card = conn.call("BF.CARD", "k")
        store.kill()
        long.conn.close()
        store.start()
        with store.conn() as conn:
            held = conn.call("BF.CARD", "k")
            assert card <= held
            # They were added in order, so all from the first on are there.
            some = ITEMS[max(card - 5000, 0):card]
            assert conn.call("BF.MEXISTS", "k", *some) == [1] * len(some)
            assert conn.call("BF.MADD", "k", *ITEMS[:1000]) == [0] * 1000
        store.assert_healthy()


def test_it_is_one_event_and_one_entry(start_server):
    server = start_server("--notify-keyspace-events", "KEA",
                          "--slowlog-log-slower-than", 1000)
    with server.conn() as conn, server.conn(proto=3) as ears:
        ears.call("PSUBSCRIBE", "__keyspace*")
        with Long(server.address, "BF.MADD", "k", *ITEMS) as long:
            pass
        assert long.answers()[1] is None
        conn.call("DEL", "k")
        told = []
        while not told or told[-1] != b"del":
            told.append(ears.read()[-1])
        assert told == [b"bloom.add", b"bloom.reserve", b"del"]
        entries = [e for e in conn.call("SLOWLOG", "GET", -1)
                   if e[3][0] == b"BF.MADD"]
        assert len(entries) == 1


def test_the_list_of_clients_while_they_come_and_go(start_server):
    server = start_server(threads=4)
    stay = [server.conn() for _ in range(300)]
    ids = {conn.call("CLIENT", "ID") for conn in stay}
    stop = threading.Event()

    def churn():
        while not stop.is_set():
            with server.conn() as conn:
                conn.call("PING")

    workers = [threading.Thread(target=churn) for _ in range(3)]
    for worker in workers:
        worker.start()
    try:
        for _ in range(30):
            lines = stay[0].call("CLIENT", "LIST").decode().splitlines()
            listed = [int(line.split(" ", 1)[0][3:]) for line in lines]
            assert listed == sorted(set(listed))
            assert ids <= set(listed)
            some = sorted(ids)[::7]
            lines = stay[1].call("CLIENT", "LIST", "ID", *some).decode()
            assert [int(line.split(" ", 1)[0][3:])
                    for line in lines.splitlines()] == some
    finally:
        stop.set()
        for worker in workers:
            worker.join()
        for conn in stay:
            conn.close()
