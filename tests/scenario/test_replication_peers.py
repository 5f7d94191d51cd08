# SPDX-License-Identifier: BSD-3-Clause
#
# Servers that may not follow each other, with the reason in the log and in INFO. Also
# fake primaries and replicas that send false, too many, too few or meaningless bytes.
# A server goes on serving, does not grow, and follows a good primary afterwards.

import itertools
import random
import socket
import time

import pytest

from lib import crash, links, peers, replicas, resp, servers
from lib.peers import HISTORY, KEY, RUN, FakePrimary, FakeReplica, full
from lib.replicas import follow, info, lead, wait_even
from lib.servers import wait_until

pytestmark = pytest.mark.slow

MIB = 1 << 20
# The cost of one connection: a group as large as these limits allow.
SMALL = ("--proto-max-bulk-len", "1mb", "--multi-max-bytes", "1mb")


@pytest.fixture
def start(group):
    return group.node


@pytest.fixture
def fake(request):
    """fake(act): a primary that runs act(peer)."""
    made = []

    def begin(act):
        made.append(FakePrimary(act))
        return made[-1]

    yield begin
    for one in made:
        one.close()


def connected(server):
    return int(info(server)["connected_slaves"])


# ---- refusals --------------------------------------------------------------

def test_a_wrong_password_and_none(start):
    primary = start("--requirepass", "open-sesame")
    primary.password = "open-sesame"
    for auth, text in (((), "masterauth"),
                       (("--masterauth", "wrong"), "WRONGPASS"),
                       (("--masterauth", "open-sesame", "--masteruser", "nobody"),
                        "WRONGPASS")):
        replica = start(*auth)
        follow(replica, primary, wait=False)
        links.wait_refusal(replica, text)
        with replica.conn() as conn:
            conn.call("CONFIG", "SET", "masteruser", "", "masterauth",
                      "open-sesame")
        wait_until(lambda r=replica: replicas.link_is_up(r), 20)
        assert b"open-sesame" not in replica.log() + primary.log()
    wait_even(primary, replica)


def test_a_redis_cannot_be_followed(start, oracle):
    replica = start()
    with replica.conn() as conn:
        conn.call("BF.ADD", "k", "x")
    follow(replica, oracle, wait=False)
    links.wait_refusal(replica, "not a Bloomery")
    with replica.conn() as conn:
        assert conn.call("BF.EXISTS", "k", "x") == 1


def test_a_redis_that_wants_a_password(start, start_oracle):
    oracle, replica = start_oracle("--requirepass", "secret"), start()
    follow(replica, oracle, wait=False)
    links.wait_refusal(replica, "masterauth")


def test_no_server_at_the_address(start):
    replica = start()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        follow(replica, free.getsockname(), wait=False)
        links.wait_refusal(replica, "refused")


def test_an_unknown_host_name(start):
    replica = start()
    follow(replica, ("no-such-host.invalid", 7379), wait=False)
    wait_until(lambda: links.refusal(replica) != "", 20)


def test_a_server_cannot_follow_itself(start):
    server = start()
    follow(server, server, wait=False)
    links.wait_refusal(server, "this server itself")


def test_a_ring_of_two(start):
    one, two = start(), start()
    follow(two, one)
    follow(one, two, wait=False)
    links.wait_refusal(one, "a ring")
    lead(one)
    wait_until(lambda: replicas.link_is_up(two), 20)
    wait_even(one, two)


def test_a_ring_of_three(start):
    one, two, three = start(), start(), start()
    follow(two, one)
    follow(three, two)
    follow(one, three, wait=False)
    links.wait_refusal(one, "a ring")
    lead(one)
    wait_until(lambda: replicas.link_is_up(three), 20)
    wait_even(one, two, three)


def test_a_ring_made_at_one_moment(start):
    one, two = start(), start()
    with one.conn() as a, two.conn() as b:
        a.send(resp.command("REPLICAOF", "127.0.0.1", two.port))
        b.send(resp.command("REPLICAOF", "127.0.0.1", one.port))
        assert a.read() == b.read() == b"OK"
    wait_until(lambda: links.refusal(one) and links.refusal(two), 20)
    assert not replicas.link_is_up(one) and not replicas.link_is_up(two)
    lead(one)
    wait_until(lambda: replicas.link_is_up(two), 20)


def test_more_replicas_than_allowed(start):
    primary = start("--max-replicas", 1)
    one, two = start(), start()
    follow(one, primary)
    follow(two, primary, wait=False)
    links.wait_refusal(two, "max-replicas")
    assert connected(primary) == 1
    with primary.conn() as conn:
        conn.call("CONFIG", "SET", "max-replicas", 2)
    wait_until(lambda: replicas.link_is_up(two), 20)


def test_a_chain_as_long_as_allowed(start):
    """Eight servers below one; the next one is refused."""
    chain = [start("--threads", 1) for _ in range(10)]
    for upper, lower in zip(chain, chain[1:9]):
        follow(lower, upper)
    follow(chain[9], chain[8], wait=False)
    links.wait_refusal(chain[9], "no chain may be longer")
    with chain[0].conn() as conn:
        conn.call("BF.ADD", "k", "x")
    wait_even(*chain[:9])


def test_fewer_databases_than_the_primary(start):
    primary, replica = start(), start("--databases", 4)
    with primary.conn() as conn:
        conn.call("BF.ADD", "k", "x")
    follow(replica, primary, wait=False)
    links.wait_refusal(replica, "databases")


SAID = [
    ("+BLOOMERY 2 %s -\r\n" % RUN, "version"),
    ("+BLOOMERY 99999999999999999999 %s -\r\n" % RUN, ""),
    ("+BLOOMERY 1 short -\r\n", ""),
    ("+BLOOMERY 1 %s %s\r\n" % (RUN, ",".join(["1" * 40] * 9)), ""),
    ("+BLOOMERY 1 %s %s\r\n" % (RUN, ",".join(["1" * 40] * 8)),
     "no chain may be longer"),
    ("+OK\r\n", "Bloomery"),
    ("-ERR unknown command 'REPLCONF'\r\n", "Bloomery"),
    ("-LOADING it loads\r\n", "LOADING it loads"),
    ("-ERR \x1b[31m\" level=error event=\"fake\r\n", "control characters"),
    ("-LOADING no \" level=error event=\"fake\r\n", "LOADING no '"),
    ("$-1\r\n", ""),
    ("\x00\xff\xfe\r\n", ""),
    ("+" + "x" * 5000, ""),
]


@pytest.mark.parametrize("line,text", SAID)
def test_an_invalid_hello(start, fake, line, text):
    replica = start()

    def act(peer):
        peer.hello(line)
        peer.wait_end()

    follow(replica, fake(act), wait=False)
    wait_until(lambda: links.refusal(replica) != "", 10)
    links.wait_refusal(replica, text)
    assert b"\x1b" not in replica.log()
    assert b'event="fake' not in replica.log()


def test_a_newer_replica_gets_the_reason(start):
    primary = start()
    with primary.conn() as conn:
        got = conn.call("REPLCONF", "bloomery", 2, "run", RUN)
        assert "a newer Bloomery cannot follow an older one" in got.args[0]


# ---- hostile primaries -----------------------------------------------------

def endless(data, limit=256 * MIB):
    """Sends these bytes until the other side closes."""
    def act(peer, first=None):
        if first is not None:
            first(peer)
        chunk = resp.as_bytes(data)
        chunk = chunk * (65536 // len(chunk) + 1)
        for _ in range(limit // len(chunk)):
            peer.send(chunk)
        raise AssertionError("it took %d MiB" % (limit // MIB))
    return act


def then(first, data, more=None):
    def act(peer):
        first(peer)
        peer.send(data)
        if more is not None:
            more(peer)
        peer.wait_end()
    return act


def noise(peer):
    rng = random.Random(crash.seeds(1)[0])
    for _ in range(200):
        peer.send(rng.randbytes(1000))


def drip(peer):
    for byte in b"$5\r\nabcd":
        peer.send(bytes([byte]))
        time.sleep(0.02)
    peer.send("e\r\n" + "x" * 100)


def shake(answer):
    return lambda peer: peer.shake(answer)


def forever(peer):
    """Sends nothing but pings, which keep a link alive."""
    peer.shake(full())
    for _ in range(100):
        peer.send("+PING\r\n" * 100 + "\n" * 1000 + "+GETACK\r\n")
    peer.send("$5\r\nBLMYx\r\n$0\r\n")
    peer.wait_end()


ADD = resp.command("BF.ADD", "k", "hostile")
SEAL = b"*" + b"S" * 103
HUGE = 9223372036854775807
PLACE, NUMBER = 2 ** 61, 10 ** 14  # a replica accepts no higher ones
LIES = {
    "noise at once": noise,
    "an endless first line": endless("x"),
    "an endless hello": lambda p: endless("x")(p, lambda q: (
        q.words(), q.send("+BLOOMERY 1 "))),
    "noise for an answer": then(peers.Peer.greet, "", noise),
    "an endless answer": lambda p: endless("x")(p, shake("+CONTINUE ")),
    "an answer of huge figures": shake(full(HUGE, HUGE, HUGE)),
    "the highest figures, and nothing more":
        shake(full(PLACE, NUMBER, 5000)),
    "a size that no machine has": shake(full(size=1 << 50)),
    "an answer of too huge figures": shake(full(10 * HUGE, 10 * HUGE, 1)),
    "an answer with a bad key":
        shake("+CONTINUE %s xyz\r\n" % HISTORY),
    "an answer that stops": then(peers.Peer.shake, "+FULLRES"),
    "a chunk that is too long": then(shake(full()), "$%d\r\n" % HUGE),
    "a chunk of negative length": then(shake(full()), "$-5\r\n"),
    "a chunk of no length": then(shake(full()), "$abc\r\n"),
    "a snapshot of noise": then(shake(full()), "$40000\r\n", noise),
    "an endless snapshot": lambda p: endless(
        "$1024\r\n" + "x" * 1024)(p, shake(full())),
    "a snapshot of nothing": then(shake(full()), "$0\r\n"),
    "chunks in drops": then(shake(full()), "", drip),
    "a link that only lives": forever,
    "groups without a seal": lambda p: endless(ADD)(p, peers.Peer.go_on),
    "a group with a false seal": then(peers.Peer.go_on, ADD + SEAL),
    "a seal alone": then(peers.Peer.go_on, SEAL),
    "a huge word": then(peers.Peer.go_on, "*2\r\n$6\r\nBF.ADD\r\n$%d\r\n" %
                        HUGE),
    "a word of some gigabytes": lambda p: endless("x")(p, lambda q: (
        q.go_on(), q.send("*2\r\n$6\r\nBF.ADD\r\n$4000000000\r\n"))),
    "a huge command": then(peers.Peer.go_on, "*%d\r\n" % HUGE),
    "many words": lambda p: endless("$1\r\nx\r\n")(p, lambda q: (
        q.go_on(), q.send("*99999999\r\n$7\r\nBF.MADD\r\n"))),
    "endless lines in the stream": lambda p: endless("x")(p, lambda q: (
        q.go_on(), q.send("+"))),
    "an error in the stream": then(peers.Peer.go_on, "-ERR go away\r\n"),
    "noise in the stream": then(peers.Peer.go_on, "", noise),
    "the end at once": lambda p: None,
    "endless hash secrets": lambda p: endless("0123456789abcdef ")(p, lambda q: (
        q.hello(), q.tell("+"))),
    "noise for hash secrets": then(peers.Peer.hello, "", noise),
    "a list of no hash secrets": lambda p: p.shake(full(), ["+x y" * 20 + "\r\n"]),
    "a false hash secret":
        lambda p: p.shake(full(), ["+%s\r\n" % KEY, "+%s\r\n" % RUN[:32]]),
    "the end behind a hello": peers.Peer.hello,
    "the end within hash secrets": lambda p: (p.hello(), p.tell("+%s\r\n" % KEY)),
    "the end behind a handshake": peers.Peer.greet,
    "the end within a snapshot":
        lambda p: (p.shake(full()), p.send("$100\r\nBLMY")),
}


@pytest.mark.parametrize("name", LIES)
def test_a_primary_that_lies(start, fake, name):
    replica, good = start(*SMALL, "--repl-timeout", 1), start()
    with good.conn() as conn:
        conn.call("BF.ADD", "good", "x")
    with replica.conn() as conn:
        conn.call("BF.ADD", "old", "x")
        before = replica.rss()
        bad = fake(LIES[name])
        follow(replica, bad, wait=False)
        # It retries a few times.
        top, until = before, time.monotonic() + 10 * servers.time_factor()
        while bad.dialled < 3 and time.monotonic() < until:
            assert conn.call("PING") == b"PONG"
            top = max(top, replica.rss())
            time.sleep(0.01)
        assert bad.dialled >= 3 or name == "a link that only lives", \
            bad.dialled
        # Until an attempt fails, its link counts as up.
        wait_until(lambda: links.refusal(replica) != "", 10, "it says why")
        assert conn.call("EXISTS", "k") == 0
        assert conn.call("BF.EXISTS", "old", "x") == 1
        assert b"dropped the data" not in replica.log()
        limit = 96 * MIB if not servers.sanitized() else 512 * MIB
        assert top - before < limit, "%d MiB" % ((top - before) // MIB)
    follow(replica, good)
    wait_even(good, replica)


def test_a_primary_that_never_answers(start, fake):
    replica = start("--repl-timeout", 1)
    for act, step in ((lambda p: p.wait_end(), "REPLCONF"),
                      (lambda p: (p.hello(), p.wait_end()), "REPLCONF"),
                      (lambda p: (p.greet(), p.wait_end()), "PSYNC"),
                      (lambda p: (p.shake(), p.wait_end()), "PSYNC"),
                      (lambda p: (p.shake(full()), p.wait_end()), "")):
        follow(replica, fake(act), wait=False)
        wait_until(lambda s=step: "ms" in links.refusal(replica) and
                   s in links.refusal(replica), 10)


def test_a_primary_of_before_hash_secrets_is_followed(start, fake):
    """1.0.0 does not know the question."""
    primary, replica, asked = start(), start(), []
    with primary.conn() as conn:
        conn.call("BF.ADD", "k", "x")

    def act(peer):
        with FakeReplica(primary.address, greet=False) as upper:
            said = []
            while said[:1] != [b"PSYNC"]:
                said = peer.words()
                if said[:2] == [b"REPLCONF", b"hash-secret"]:
                    asked.append(said)
                    peer.send("-ERR Unrecognized REPLCONF option: hash-secret\r\n")
                    continue
                upper.say(*said)
                peer.send(upper.line() + b"\r\n")
            while data := upper.sock.recv(65536):
                peer.send(data)

    follow(replica, fake(act))
    wait_even(primary, replica)
    assert len(asked) == 1


# ---- hostile replicas ------------------------------------------------------

@pytest.fixture
def primary(start):
    server = start("--client-output-buffer-limit", "replica 4mb 2mb 1",
                   "--repl-backlog-size", "1mb", "--repl-timeout", 1,
                   "--repl-ping-replica-period", 1)
    with server.conn() as conn:
        conn.call("BF.MADD", "k", *range(100))
    return server


def test_acknowledgements_beyond_the_sent_offset(primary):
    for words in (("ACK", HUGE), ("ACK", 10 ** 9), ("ACK", "-1"),
                  ("ACK", "x"), ("ACK",), ("ACK", "1", "FACK"),
                  ("GETACK", "*"), ("listening-port", 5)):
        with FakeReplica(primary.address) as replica:
            assert replica.ask().startswith(b"+FULLRESYNC")
            if words == ("ACK", 10 ** 9):
                wait_until(lambda: "send_bulk" in
                           info(primary).get("slave0", ""))
                replica.sock.recv(1 << 20)
            replica.say("REPLCONF", *words)
            replica.drain()
    wait_until(lambda: connected(primary) == 0)


def test_a_wait_does_not_believe_every_acknowledgement(primary):
    with primary.conn() as conn, FakeReplica(primary.address) as replica:
        replica.ask()
        conn.call("BF.ADD", "k", "new")
        conn.send(resp.command("WAIT", 1, 700))
        replica.say("REPLCONF", "ACK", 10 ** 12, "FACK", 10 ** 12)
        assert conn.read() == 0


@pytest.mark.parametrize("data", [
    b"x" * 10000, b"\x00\xff" * 5000, b"*1\r\n$4\r\nPING\r\n" * 100,
    b"*99999999\r\n", b"*1\r\n$99999999\r\n", b"PING\r\n" * 10,
    resp.command("BF.ADD", "smuggled", "x"), b"\r\n" * 5000])
def test_a_replica_that_sends_other_commands(primary, data):
    with FakeReplica(primary.address) as replica:
        assert replica.ask().startswith(b"+FULLRESYNC")
        replica.sock.sendall(data)
        if data.strip():
            replica.drain()
    with primary.conn() as conn:
        assert conn.call("EXISTS", "smuggled") == 0
        assert conn.call("PING") == b"PONG"
    wait_until(lambda: connected(primary) == 0)


def test_commands_after_psync_are_not_run(primary):
    with FakeReplica(primary.address) as replica:
        replica.sock.sendall(resp.command("PSYNC", "?", "-1") +
                             resp.command("BF.ADD", "smuggled", "x"))
        replica.drain()
    with primary.conn() as conn:
        assert conn.call("EXISTS", "smuggled") == 0


def test_psync_at_odd_places(primary, start):
    def ask(*words):
        with FakeReplica(primary.address) as replica:
            replica.say(*words)
            return replica.line()

    for words in (("PSYNC",), ("PSYNC", HISTORY), ("PSYNC", HISTORY, "x"),
                  ("PSYNC", HISTORY, -1), ("PSYNC", "short", 1),
                  ("PSYNC", HISTORY, 10 * HUGE), ("SYNC",),
                  ("PSYNC", "?", "-1", "FAILOVER", "x"),
                  ("PSYNC", "?", "-1", "x")):
        assert ask(*words).startswith(b"-ERR"), words
    for words in (("REPLCONF",), ("REPLCONF", "x"), ("REPLCONF", "x", "y"),
                  ("REPLCONF", "listening-port", 99999999),
                  ("REPLCONF", "ip-address", "a b"),
                  ("REPLCONF", "ip-address", "x" * 300),
                  ("REPLCONF", "ip-address", "1,slave1:ip=6"),
                  ("REPLCONF", "history", HISTORY),
                  ("REPLCONF", "bloomery", 1, "run", "short"),
                  ("REPLCONF", "bloomery", 0, "run", RUN)):
        got = ask(*words)
        assert got.startswith(b"-ERR") or got == b"+OK", (words, got)
    with FakeReplica(primary.address) as replica:  # an offset in the future
        assert replica.ask(HISTORY, HUGE).startswith((b"+FULL", b"-ERR"))
    with primary.conn() as conn:
        for words in ("MULTI", "REPLCONF bloomery 1 run %s" % RUN,
                      "PSYNC ? -1"):
            got = conn.call(*words.split())
        assert isinstance(got, resp.Error) or got == b"QUEUED"
    locked = start("--requirepass", "secret")
    locked.password = "secret"
    with FakeReplica(locked.address, greet=False) as replica:
        for words in (("REPLCONF", "bloomery", 1, "run", RUN),
                      ("PSYNC", "?", "-1"), ("SYNC",)):
            replica.say(*words)
            assert replica.line().startswith(b"-NOAUTH")


def test_a_flood_of_psync(primary):
    """Connections that ask for a full synchronization and leave, or stay."""
    before = primary.rss()
    kept = []
    try:
        for number in range(150):
            replica = FakeReplica(primary.address, "%040x" % number)
            replica.say("PSYNC", "?", "-1")
            if number % 3:
                replica.close()
            else:
                kept.append(replica)
        assert connected(primary) <= 32
        with primary.conn() as conn:
            assert conn.call("BF.ADD", "k", "still") == 1
            assert primary.rss() - before < 64 * MIB or servers.sanitized()
    finally:
        for replica in kept:
            replica.close()
    wait_until(lambda: connected(primary) == 0)
    wait_until(lambda: info(primary, "persistence")
               ["rdb_bgsave_in_progress"] == "0", 20)


def test_one_run_id_on_many_connections(primary, start):
    """The newest connection counts, and the real replica returns."""
    replica = start()
    follow(replica, primary)
    with replica.conn() as conn:
        run = [line.split(":")[1] for line in conn.call(
            "INFO", "server").decode().splitlines()
               if line.startswith("run_id")][0]
    thieves = [FakeReplica(primary.address, run) for _ in range(10)]
    for thief in thieves:
        thief.say("PSYNC", "?", "-1")
    wait_until(lambda: connected(primary) == 1)
    for thief in thieves:
        thief.close()
    wait_until(lambda: replicas.link_is_up(replica), 20)
    wait_even(primary, replica)


FRESH = itertools.count()


def grow(primary, megabytes):
    """Writes that many bytes to the log, into a filter that does not grow."""
    items = ["%01000d" % i for i in range(250)]
    with primary.conn() as conn:
        conn.call("BF.RESERVE", "wide", "0.01", 10 ** 6)
        for _ in range(megabytes * 4):
            number = next(FRESH)
            conn.call("BF.MADD", "wide",
                      *["%d%s" % (number, item) for item in items])


def test_a_replica_that_never_reads(primary):
    """It costs its limits, once, and is disconnected."""
    grow(primary, 4)
    before = primary.rss()
    top = 0
    with FakeReplica(primary.address, rcvbuf=4096) as replica:
        assert replica.ask().startswith(b"+FULLRESYNC")
        for _ in range(10):
            grow(primary, 4)
            top = max(top, primary.rss())
        wait_until(lambda: connected(primary) == 0)
        replica.drain()
    assert b"output limit" in primary.log() or b"not taken" in primary.log()
    print("%d KiB more" % ((top - before) >> 10))
    assert top - before < 24 * MIB or servers.sanitized()


def test_a_full_synchronization_does_not_wait_for_the_slowest(primary, start):
    """One of two replicas does not read: it times out, the other one is
    served."""
    with primary.conn() as conn:
        conn.call("CONFIG", "SET", "repl-diskless-sync-delay", 1)
        for number in range(10):
            conn.call("BF.RESERVE", "big:%d" % number, "0.001", 2000000)
    replica = start()
    with FakeReplica(primary.address, rcvbuf=4096) as slow:
        slow.say("PSYNC", "?", "-1")
        follow(replica, primary)
        wait_even(primary, replica)
        wait_until(lambda: connected(primary) == 1, 20)
        slow.drain()
