# SPDX-License-Identifier: BSD-3-Clause
#
# Commands with very many items. Adds are atomic for other clients and in the journal;
# queries run in parts. The limit of items. Also CLIENT LIST while clients connect and
# disconnect, and the longest command in INFO.

import threading

import pytest

from lib import crash, resp, servers

COUNT = 100_000 if servers.sanitized() else 300_000
ITEMS = [b"item:%d" % i for i in range(COUNT)]


class Long:
    """A connection that runs one long command and reads its reply on request.
    The reply is a long array of :0 and :1, so it stays bytes."""

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
        """Decodes an array of integers; its last element may be an error."""
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
        """Returns the replies as a string of 0 and 1, and the error or
        None."""
        self.thread.join(120 * servers.time_factor())
        head, _, body = self.reply.partition(b"\r\n")
        count = int(head[1:])
        if len(body) == 4 * count:
            return body[1::4], None
        cut = 4 * (count - 1)
        return body[:cut][1::4], body[cut:].decode().strip()


def watch(conn, long, key="k"):
    """Returns the replies to BF.CARD during the command."""
    seen = set()
    while long.runs():
        seen.add(conn.call("BF.CARD", key))
    return seen


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("words", [
    ("BF.MADD", "k"),
    ("BF.INSERT", "k", "CAPACITY", 2 * COUNT, "ERROR", "0.001", "ITEMS"),
], ids=["madd", "insert"])
def test_other_clients_see_all_items_or_none(start_server, words, threads):
    server = start_server(threads=threads)
    with server.conn() as conn:
        for repeat in range(5):
            with Long(server.address, *words, *ITEMS) as long:
                seen = watch(conn, long)
            answers, error = long.answers()
            assert error is None and len(answers) == COUNT
            assert seen <= {0, answers.count(b"1")}
            if repeat < 4:
                conn.call("DEL", "k")
        with Long(server.address, "BF.MEXISTS", "k", *ITEMS) as long:
            pass
        assert long.answers() == (b"1" * COUNT, None)
        with Long(server.address, "BF.MEXISTS", "none", *ITEMS) as long:
            pass
        assert long.answers() == (b"0" * COUNT, None)
        assert conn.call("BF.COUNTNEW", "k", *ITEMS[::-1]) == 0
        # The command counts once, however often it paused.
        stats = crash.info(conn, "commandstats")
        assert stats["cmdstat_BF.MEXISTS"].startswith("calls=2,")
        assert stats["cmdstat_" + words[0]].startswith("calls=5,")


@pytest.mark.parametrize("words", [("BF.MEXISTS", "k"), ("BF.COUNTNEW", "k")],
                         ids=lambda words: words[0])
def test_commands_that_ask_let_other_clients_run(start_server, words):
    server = start_server(threads=1)
    with server.conn() as conn:
        conn.call("BF.INSERT", "k", "CAPACITY", 1, "EXPANSION", 1, "ERROR",
                  "0.01", "TIGHTENING", "0.999", "ITEMS", *ITEMS[:1024])
        conn.call("CONFIG", "RESETSTAT")
        calls = 0
        with server.conn() as other:
            other.send(resp.command(*words, *ITEMS[:50_000]))
            while not crash.info(conn, "commandstats").get(
                    "cmdstat_" + words[0]):
                calls += 1
            other.read()
        assert calls > 5


def test_commands_that_add_are_timed_as_one_step(start_server):
    server = start_server(threads=4)
    with server.conn() as conn:
        conn.call("BF.MADD", "k", *ITEMS[:100_000])
        # No other command ran in between, and INFO names the longest handler.
        stats = crash.info(conn, "stats")
        assert stats["longest_handler"] == "BF.MADD"
        assert stats["longest_lock"] == "BF.MADD"
        assert int(stats["longest_handler_usec"]) > 2000
        conn.call("CONFIG", "RESETSTAT")
        stats = crash.info(conn, "stats")
        assert int(stats["longest_handler_usec"]) < 2000
        assert stats["longest_lock"] != "BF.MADD"


def test_the_option_limits_the_items(start_server):
    server = start_server("--bf.max-items-per-command", "1000")
    too_many = resp.Error(
        "ERR too many items in one command (bf.max-items-per-command)")
    with server.conn() as conn:
        for words in (("BF.MADD", "k"), ("BF.INSERT", "k", "ITEMS"),
                      ("BF.MEXISTS", "k"), ("BF.COUNTNEW", "k")):
            assert conn.call(*words, *ITEMS[:1001]) == too_many
        assert conn.call("EXISTS", "k") == 0
        assert len(conn.call("BF.MADD", "k", *ITEMS[:1000])) == 1000
        conn.call("CONFIG", "SET", "bf.max-items-per-command", "1001")
        assert len(conn.call("BF.MEXISTS", "k", *ITEMS[:1001])) == 1001


def test_the_limit_does_not_apply_to_a_replay_or_a_replica(tmp_path):
    with crash.Store("--appendonly", "yes", "--appendfsync", "always") as store:
        store.start()
        with store.conn() as conn:
            conn.call("BF.MADD", "k", *ITEMS[:5000])
            before = conn.call("BF.CARD", "k"), conn.call("DUMP", "k")
        store.kill()
        store.start("--bf.max-items-per-command", "10")
        with store.conn() as conn:
            assert (conn.call("BF.CARD", "k"), conn.call("DUMP", "k")) == before
        store.assert_healthy()


@pytest.mark.parametrize("words", [
    ("BF.MADD", "k"), ("BF.INSERT", "k", "CAPACITY", 1000, "ITEMS")],
    ids=["madd", "insert"])
def test_a_kill_leaves_all_items_or_none(words):
    with crash.Store("--appendonly", "yes", "--appendfsync", "always") as store:
        store.start()
        with store.conn() as conn:
            conn.call("BF.RESERVE", "other", "0.01", 10)
            long = Long(store.address(), *words, *ITEMS)
            long.conn.send(long.request)
            card = servers.wait_until(lambda: conn.call("BF.CARD", "k"), 60,
                                      "items come", 0)
        store.kill()
        long.conn.close()
        store.start()
        with store.conn() as conn:
            assert conn.call("BF.CARD", "k") == card
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


def test_client_list_while_clients_come_and_go(start_server):
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
