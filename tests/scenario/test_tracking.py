# SPDX-License-Identifier: BSD-3-Clause
#
# Client-side caching with several clients. CLIENT TRACKING guarantees that a client
# that drops the invalidated keys never keeps a wrong answer.

import os
import queue
import random
import re
import select
import threading
import time

import pytest

from lib import resp, servers

NULL = "everything"
FACTOR = servers.time_factor()


def seed():
    value = int(os.environ.get("BLOOMERY_SEED", "0"), 0) or \
        random.SystemRandom().getrandbits(32)
    print("BLOOMERY_SEED=%d" % value)
    return value


class Client(resp.Conn):
    """A connection that separates pushes from replies."""

    def __init__(self, address, proto=3):
        super().__init__(address, proto)
        self.id = super().call("CLIENT", "ID")

    def message(self):
        """("reply", value) or ("invalidate", key or NULL) or ("push", value)."""
        raw = self.read_raw()
        value = resp.decode(raw)
        if raw[:1] == b">" or (isinstance(value, list) and value and
                               value[0] == b"message"):
            if value[0] == b"invalidate":
                return "invalidate", NULL if value[1] is None else value[1][0]
            if value[:2] == [b"message", b"__redis__:invalidate"]:
                return "invalidate", NULL if value[2] is None else value[2][0]
            return "push", value
        return "reply", value

    def ask(self, *args):
        """Returns the reply, with the messages before it in .heard."""
        self.send(resp.command(*args))
        self.heard = []
        while True:
            kind, value = self.message()
            if kind == "reply":
                return value
            self.heard.append((kind, value))

    def next_push(self):
        kind, value = self.message()
        assert kind != "reply", value
        return kind, value


@pytest.fixture
def client(server):
    opened = []

    def connect(proto=3):
        opened.append(Client(server.address, proto))
        return opened[-1]

    yield connect
    for one in opened:
        one.close()


def tracking(conn, *options):
    assert conn.ask("CLIENT", "TRACKING", "ON", *options) == b"OK"


def on_other_loop(client, than, same, proto=3):
    """The server assigns connections round robin: 4 threads, consecutive
    ids."""
    while True:
        conn = client(proto)
        if (conn.id % 4 == than.id % 4) == same:
            return conn


# ---- redirection -----------------------------------------------------------

@pytest.mark.parametrize("same", [True, False], ids=["one loop", "two loops"])
@pytest.mark.parametrize("proto", [2, 3])
def test_redirected_invalidations_arrive_and_a_broken_redirection_is_reported(
        client, same, proto):
    reader, writer = client(), client()
    target = on_other_loop(client, reader, same, proto)
    tracking(reader, "REDIRECT", str(target.id))
    assert reader.ask("CLIENT", "GETREDIR") == target.id
    info = dict(word.split("=", 1)
                for word in reader.ask("CLIENT", "INFO").decode().split())
    assert (info["flags"], info["redir"]) == ("t", str(target.id))
    if proto == 2:
        # Without a subscription the client cannot get any message.
        reader.ask("BF.EXISTS", "lost", "x")
        writer.ask("BF.ADD", "lost", "x")
        assert target.ask("PING") == b"PONG" and not target.heard
        target.send(resp.command("SUBSCRIBE", "__redis__:invalidate"))
        assert target.read()[0] == b"subscribe"
    for name in (b"k1", b"", b"\x00\r\n"):
        assert reader.ask("BF.EXISTS", name, "x") in (0, False)
        writer.ask("BF.ADD", name, "x")
        heard = target.next_push()
        if heard == ("invalidate", b"lost"):  # it arrived after SUBSCRIBE
            heard = target.next_push()
        assert heard == ("invalidate", name)
    writer.ask("FLUSHALL")
    assert target.next_push() == ("invalidate", NULL)
    reader.ask("BF.EXISTS", "k", "x")
    target.close()
    servers.wait_until(
        lambda: b"id=%d " % target.id not in writer.ask("CLIENT", "LIST"), 5,
        "the end of the target")
    writer.ask("BF.ADD", "k", "x")
    assert reader.next_push() == ("push", [b"tracking-redir-broken", target.id])
    state = reader.ask("CLIENT", "TRACKINGINFO")
    assert state[b"flags"] == [b"on", b"broken_redirect"]
    assert b"flags=tR " in reader.ask("CLIENT", "INFO")
    # After being turned on again it works as before.
    tracking(reader)
    assert reader.ask("CLIENT", "TRACKINGINFO")[b"flags"] == [b"on"]
    reader.ask("BF.EXISTS", "k", "x")
    writer.ask("BF.ADD", "k", "y")
    assert reader.next_push() == ("invalidate", b"k")


def test_a_target_stays_a_target_after_reset_in_resp3(client):
    reader, writer = client(), client()
    target = on_other_loop(client, reader, False)
    tracking(reader, "REDIRECT", str(target.id))
    for _ in range(2):
        reader.ask("BF.EXISTS", "k", "x")
        writer.ask("BF.ADD", "k", str(random.random()))
        assert target.next_push() == ("invalidate", b"k")
        assert target.ask("RESET") == b"RESET"
        target.ask("HELLO", "3")


def test_a_client_may_redirect_to_itself(client):
    reader, writer = client(), client()
    tracking(reader, "REDIRECT", str(reader.id))
    reader.ask("BF.EXISTS", "k", "x")
    writer.ask("BF.ADD", "k", "x")
    assert reader.next_push() == ("invalidate", b"k")


# ---- who hears, who does not -----------------------------------------------

def test_one_key_and_many_clients_of_which_some_have_left(client):
    readers = [client() for _ in range(60)]
    writer = client()
    for reader in readers:
        tracking(reader)
        reader.ask("BF.EXISTS", "hot", "x")
    figures = writer.ask("INFO", "stats").decode()
    assert "tracking_total_keys:1\r\n" in figures
    assert "tracking_total_items:60\r\n" in figures
    assert "tracking_clients:60\r\n" in writer.ask("INFO", "clients").decode()
    for reader in readers[::3]:
        reader.close()
    servers.wait_until(
        lambda: b"tracking_clients:40\r\n" in writer.ask("INFO", "clients"), 5,
        "the end of twenty")
    writer.ask("BF.ADD", "hot", "x")
    for number, reader in enumerate(readers):
        if number % 3 != 0:
            assert reader.next_push() == ("invalidate", b"hot")
            assert reader.ask("PING") == b"PONG" and not reader.heard
    figures = writer.ask("INFO", "stats").decode()
    assert "tracking_total_keys:0\r\n" in figures
    assert "tracking_total_items:0\r\n" in figures


@pytest.mark.parametrize("how", ["timer", "access"])
def test_an_expired_key_is_invalidated_by_timer_and_by_access(client, how):
    reader, writer, bcast = client(), client(), client()
    tracking(reader, "NOLOOP")
    tracking(bcast, "BCAST", "PREFIX", "k")
    for i in range(1 if how == "timer" else 20):
        writer.pipeline([("BF.ADD", "k", "x"), ("PEXPIRE", "k", "30")])
        assert bcast.next_push() == bcast.next_push() == ("invalidate", b"k")
        reader.ask("BF.CARD", "k")
        if how == "access":
            servers.wait_until(lambda: writer.ask("EXISTS", "k") == 0, 5, "k")
            writer.ask("DEL", "k")
        for conn in (reader, bcast):
            assert conn.next_push() == ("invalidate", b"k")
        assert reader.ask("PING") == b"PONG" and not reader.heard


def test_a_run_of_reads_is_remembered_key_by_key(client):
    reader, writer = client(), client()
    tracking(reader)
    names = [b"k%d" % (i // 7) for i in range(700)]
    reader.send(b"".join(resp.command("BF.EXISTS", n, "x") for n in names))
    for _ in names:
        assert reader.message()[0] == "reply"
    writer.pipeline([("BF.ADD", n, "x") for n in sorted(set(names))])
    heard = [reader.next_push()[1] for _ in set(names)]
    assert sorted(heard) == sorted(set(names))
    assert reader.ask("PING") == b"PONG" and not reader.heard


def test_a_reply_comes_before_its_invalidation_within_a_pipeline(client):
    reader = client()
    tracking(reader)
    reader.send(resp.command("BF.ADD", "k", "a") +
                resp.command("BF.EXISTS", "k", "a") +
                resp.command("BF.ADD", "k", "b") + resp.command("PING"))
    got = [reader.message() for _ in range(5)]
    assert [g for g in got if g[0] == "invalidate"] == [("invalidate", b"k")]
    assert got.index(("invalidate", b"k")) > 2


@pytest.mark.parametrize("same", [True, False], ids=["one loop", "two loops"])
def test_no_reply_after_a_change_is_older_than_its_invalidation(client, same):
    """Once the writer has its reply, every later reply to the reader comes
    after the invalidation: a round trip is a barrier."""
    reader = client()
    tracking(reader)
    writer = on_other_loop(client, reader, same)
    writer.ask("BF.ADD", "k", "x")
    for i in range(300):
        reader.ask("BF.EXISTS", "k", i)
        writer.ask("BF.ADD", "k", i)
        reader.send(resp.command("PING"))
        assert reader.message() == ("invalidate", b"k"), "round %d" % i
        assert reader.message() == ("reply", b"PONG")


@pytest.mark.parametrize("same", [True, False], ids=["one loop", "two loops"])
def test_a_published_message_comes_before_the_next_reply(client, same):
    reader = client()
    reader.send(resp.command("SUBSCRIBE", "c"))
    reader.read()
    writer = on_other_loop(client, reader, same)
    for i in range(300):
        assert writer.ask("PUBLISH", "c", i) == 1
        reader.send(resp.command("PING"))
        assert reader.read() == [b"message", b"c", b"%d" % i]
        assert reader.read() == b"PONG"


def test_keys_beyond_the_limit_are_invalidated(client):
    reader, admin = client(), client()
    admin.ask("CONFIG", "SET", "tracking-table-max-keys", "10")
    tracking(reader)
    heard = []
    for i in range(100):
        reader.ask("BF.EXISTS", "k%d" % i, "x")
        heard += reader.heard
    while len(heard) < 90:
        heard.append(reader.next_push())
    assert len(set(heard)) == 90
    assert b"tracking_total_keys:10\r\n" in admin.ask("INFO", "stats")


def test_the_names_of_tracked_keys_have_a_limit_in_bytes(client):
    reader, admin = client(), client()
    admin.ask("CONFIG", "SET", "tracking-table-max-bytes", "1mb")
    tracking(reader)
    before = [b"%06d" % i + b"x" * 30000 for i in range(100)]
    heard = 0
    for name in before:
        reader.ask("BF.EXISTS", name, "x")
        heard += len(reader.heard)
    figures = admin.ask("INFO", "stats").decode()
    kept = int(figures.split("tracking_total_keys:")[1].split("\r")[0])
    assert 20 <= kept <= 34
    while heard < 100 - kept:
        reader.next_push()
        heard += 1
    # A name that is too long for the table is invalidated right after the
    # read.
    reader.ask("BF.EXISTS", b"y" * 100000, "x")
    assert (reader.heard or [reader.next_push()])[0][1] == b"y" * 100000


def test_prefixes_have_a_limit(client):
    reader = client()
    count, words = 0, []
    while True:
        error = reader.ask("CLIENT", "TRACKING", "ON", "BCAST", *words)
        if isinstance(error, resp.Error):
            break
        assert error == b"OK"
        count += 1
        assert count < 10000
        words = ["PREFIX", "%06d" % count]
        if count == 1:
            reader.ask("CLIENT", "TRACKING", "OFF")
    assert "tracking-prefixes-max-bytes" in str(error)
    assert 500 < count < 2000
    figures = reader.ask("INFO", "stats").decode()
    assert "tracking_total_prefixes:%d\r\n" % (count - 1) in figures
    reader.ask("CLIENT", "TRACKING", "OFF")
    assert b"tracking_total_prefixes:0\r\n" in reader.ask("INFO", "stats")


def test_prefixes_of_several_loops_count_once(client):
    readers = [client() for _ in range(8)]
    for number, reader in enumerate(readers):
        tracking(reader, "BCAST", "PREFIX", "same", "PREFIX", "own%d" % number)
    figures = readers[0].ask("INFO", "stats").decode()
    assert "tracking_total_prefixes:9\r\n" in figures
    writer = client()
    writer.ask("BF.ADD", "same:1", "x")
    writer.ask("BF.ADD", "own3:1", "x")
    for reader in readers:
        assert reader.next_push() == ("invalidate", b"same:1")
    assert readers[3].next_push() == ("invalidate", b"own3:1")


def test_evicted_keys_are_invalidated(client, start_server):
    server = start_server("--maxmemory-policy", "allkeys-random")
    with Client(server.address) as reader, \
            Client(server.address) as writer:
        tracking(reader, "BCAST")
        used = int(writer.ask("INFO", "memory").decode()
                   .split("used_memory:")[1].split("\r")[0])
        writer.ask("CONFIG", "SET", "maxmemory", str(used + (1 << 20)))
        writer.send(b"".join(resp.command("BF.RESERVE", "k%d" % i, "0.001",
                                          "20000") for i in range(400)))
        told = [writer.message() for _ in range(400)]
        made = sum(1 for t in told if t == ("reply", b"OK") or
                   t == ("reply", 1))
        evicted = int(writer.ask("INFO", "stats").decode()
                      .split("evicted_keys:")[1].split("\r")[0])
        assert made == 400 and evicted > 300
        for _ in range(made + evicted):
            assert reader.next_push()[0] == "invalidate"


def test_a_loop_that_drops_invalidations_cuts_their_clients(client, start_server):
    """A client that reads nothing is cut at some time, and never misses an
    invalidation silently."""
    server = start_server("--notice-buffer-limit", "1mb",
                          "--client-output-buffer-limit",
                          "normal 1mb 512kb 1")
    with Client(server.address) as reader, \
            Client(server.address) as writer:
        tracking(reader, "BCAST")
        until = time.monotonic() + 60 * FACTOR
        while b"tracking_clients:0\r\n" not in writer.ask("INFO", "clients"):
            writer.pipeline([("BF.ADD", "k%d" % i + "x" * 200,
                              str(random.random())) for i in range(1000)])
            assert time.monotonic() < until
        with pytest.raises(resp.Closed):
            while True:
                reader.next_push()


# ---- caches against the truth ----------------------------------------------

KEYS = [b"key:%d" % i for i in range(24)]
ITEMS = [b"i%d" % i for i in range(40)]


class Writer(threading.Thread):
    """Works in bursts; between two bursts nothing changes."""

    def __init__(self, address, number, errors):
        super().__init__(daemon=True)
        self.random = random.Random(number)
        self.address, self.errors = address, errors
        self.dumped = []
        self.bursts = queue.Queue()  # seconds; None ends the thread
        self.rested = threading.Event()

    def burst(self, conn, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            commands = self.change()
            for command, reply in zip(commands, conn.pipeline(commands)):
                if command[0] == "DUMP" and isinstance(reply, bytes):
                    self.dumped = (self.dumped + [reply])[-5:]

    def change(self):
        draw, key = self.random, self.random.choice(KEYS)
        other, item = draw.choice(KEYS), draw.choice(ITEMS)
        kind = draw.randrange(1000)
        if kind < 350:
            return [("BF.ADD", key, item)]
        if kind < 420:
            return [("BF.MADD", key, item, draw.choice(ITEMS))]
        if kind < 480:
            return [("BF.INSERT", key, "CAPACITY", "50", "ITEMS", item)]
        if kind < 520:
            return [("BF.RESERVE", key, "0.01", "30", "EXPANSION", "2")]
        if kind < 600:
            return [(draw.choice(["DEL", "UNLINK"]), key, other)]
        if kind < 680:
            return [("PEXPIRE", key, str(draw.choice([1, 5, 20, 100])))]
        if kind < 710:
            return [("PERSIST", key)]
        if kind < 760:
            return [(draw.choice(["RENAME", "RENAMENX"]), key, other)]
        if kind < 800:
            return [("COPY", key, other, "REPLACE")]
        if kind < 830:
            return [("MOVE", key, "1"), ("SELECT", "1"), ("MOVE", key, "0"),
                    ("SELECT", "0")]
        if kind < 850:
            return [("DUMP", key)]
        if kind < 880 and self.dumped:
            return [("RESTORE", key, "0", draw.choice(self.dumped), "REPLACE")]
        if kind < 910:
            return [("BF.RESET", key), ("BF.MERGE", key, other)]
        if kind < 990:
            return [("MULTI",), ("BF.ADD", key, item), ("DEL", other),
                    ("BF.MADD", draw.choice(KEYS), item), ("EXEC",)]
        if kind < 994:
            return [(draw.choice(["FLUSHDB", "FLUSHALL"]),)]
        if kind < 997:
            return [("SWAPDB", "0", "1"), ("SWAPDB", "1", "0")][:
                                                            draw.randrange(3)]
        return [("BF.ADD", key, item)] * 20

    def run(self):
        try:
            with resp.Conn(self.address) as conn:
                for seconds in iter(self.bursts.get, None):
                    self.burst(conn, seconds)
                    self.rested.set()
        except Exception as problem:  # the test shows it
            self.errors.append(problem)
            self.rested.set()


class Reader(threading.Thread):
    """Requests keys that it has not cached, and drops invalidated keys.
    PENDING marks a reply that has not arrived yet: with REDIRECT its
    invalidation may arrive earlier, on the other connection."""

    PENDING = object()

    def __init__(self, address, number, mode, errors):
        super().__init__(daemon=True)
        self.random = random.Random(number)
        self.errors, self.mode = errors, mode
        self.conn = Client(address)
        self.ears = self.conn
        self.cache = {}
        self.hits = self.drops = 0
        self.quiet = False
        self.rests, self.go = threading.Event(), threading.Event()
        self.ends = False
        options = {"default": [], "optin": ["OPTIN"], "optout": ["OPTOUT"],
                   "bcast": ["BCAST", "PREFIX", "key:"], "exec": ["OPTIN"]}
        if mode.startswith("redirect"):
            self.ears = Client(address, int(mode[-1]))
            tracking(self.conn, "REDIRECT", str(self.ears.id))
        else:
            tracking(self.conn, *options[mode])
        self.ears.send(resp.command("SUBSCRIBE", "__redis__:invalidate",
                                    "quiet"))
        assert [self.ears.read()[0] for _ in range(2)] == [b"subscribe"] * 2
        self.waiting = []

    def questions(self):
        """Returns some (request, part of the replies that matters, key)."""
        key, item = self.random.choice(KEYS), self.random.choice(ITEMS)
        question = self.random.choice([
            (b"BF.CARD", key), (b"BF.EXISTS", key, item),
            (b"BF.MEXISTS", key, item, ITEMS[0]), (b"EXISTS", key)])
        if question in self.cache:
            self.hits += 1
            return b""
        self.cache[question] = self.PENDING
        out = resp.command(*question)
        if self.mode == "optin":
            self.waiting.append(None)
            out = resp.command("CLIENT", "CACHING", "YES") + out
        if self.mode == "exec":
            self.waiting += [None] * 4
            out = (resp.command("CLIENT", "CACHING", "YES") +
                   resp.command("MULTI") + resp.command("PTTL", key) + out +
                   resp.command("EXEC"))
        self.waiting.append(question)
        return out

    def answer(self, value):
        question = self.waiting.pop(0)
        if question is None:
            return
        if self.mode == "exec":
            value = value[1]
        if self.cache.get(question) is self.PENDING:
            if isinstance(value, resp.Error):
                del self.cache[question]
            else:
                self.cache[question] = value

    def hear(self, conn):
        kind, value = conn.message()
        if kind == "reply":
            self.answer(value)
        elif kind == "invalidate":
            self.drops += 1
            for question in list(self.cache):
                if value == NULL or question[1] == value:
                    del self.cache[question]
        elif value[:2] == [b"message", b"quiet"]:
            self.quiet = True
        else:
            raise AssertionError("heard %r" % (value,))

    def run(self):
        conns = {self.conn.sock: self.conn, self.ears.sock: self.ears}
        try:
            while not self.ends:
                if not self.waiting and not self.quiet:
                    for _ in range(self.random.choice([1, 1, 4])):
                        self.conn.send(self.questions())
                ready = [s for s, c in conns.items() if c.data] or \
                    select.select(list(conns), [], [], 0.001)[0]
                for sock in ready:
                    self.hear(conns[sock])
                if self.quiet and not self.waiting:
                    self.rests.set()
                    self.go.wait()
                    self.go.clear()
                    self.quiet = False
        except Exception as problem:
            self.errors.append(problem)
            self.rests.set()

    def close(self):
        self.conn.close()
        self.ears.close()


MODES = ["default", "default", "optin", "optout", "bcast", "exec", "redirect2",
         "redirect3"]


def settle(control):
    """Waits until nothing changes by itself any more: an expired key is
    missing at once, but its invalidation comes when it is removed."""
    for db in "10":
        control.call("SELECT", db)
        control.pipeline([("PERSIST", key) for key in KEYS])
    servers.wait_until(
        lambda: not re.search(rb"expires=[1-9]", control.call("INFO", "keyspace")),
        10, "the end of all that expires")


def one_burst(control, readers, writers, errors):
    for thread in writers:
        thread.rested.clear()
        thread.bursts.put(0.2)
    for thread in writers:
        assert thread.rested.wait(60 * FACTOR)
    settle(control)
    time.sleep(0.03)  # readers request some of it once more
    # It uses the same path as the invalidations, and comes after them.
    control.call("PUBLISH", "quiet", "now")
    for thread in readers:
        assert thread.rests.wait(30 * FACTOR), (thread.mode, thread.waiting)
    assert not errors, errors


def wrong_answers(control, readers):
    wrong, checked = [], 0
    for reader in readers:
        for question, cached in reader.cache.items():
            checked += 1
            truth = control.call(*question)
            if truth != cached:
                wrong.append((reader.mode, question, cached, truth))
    return wrong, checked


@pytest.mark.parametrize("options", [
    (), ("--tracking-table-max-keys", "5"), ("--appendonly", "yes")],
    ids=["plain", "few keys", "journal"])
def test_caches_equal_the_truth_when_all_is_quiet(start_server, options):
    server = start_server(*options)
    start = seed()
    bursts = int(12 * float(os.environ.get("BLOOMERY_ROUNDS", "1")))
    errors, checked = [], 0
    readers = [Reader(server.address, start + i, mode, errors)
               for i, mode in enumerate(MODES)]
    writers = [Writer(server.address, start + 100 + i, errors)
               for i in range(8)]
    for thread in readers + writers:
        thread.start()
    # BF.EXISTS may reply with booleans in RESP3, as it does to the readers.
    with resp.Conn(server.address, 3) as control:
        for _ in range(bursts):
            one_burst(control, readers, writers, errors)
            wrong, count = wrong_answers(control, readers)
            assert not wrong, wrong[:10]
            checked += count
            for reader in readers:
                reader.rests.clear()
                reader.go.set()
    for thread in writers:
        thread.bursts.put(None)
    for reader in readers:
        reader.ends = True
        reader.go.set()
    for thread in readers + writers:
        thread.join(10 * FACTOR)
        assert not thread.is_alive()
    for reader in readers:
        reader.close()
    assert not errors, errors
    assert checked > bursts
    assert all(r.drops > 10 for r in readers), [r.drops for r in readers]
    assert sum(r.hits for r in readers) > 50
