# SPDX-License-Identifier: BSD-3-Clause
#
# Pub/sub across several loops: every message arrives once and in order. The server
# disconnects a client that does not read, without effect on others. Subscribers
# connect and disconnect. Key events come in the order of the changes, and not before
# the changes are durable.

import os
import random
import re
import shlex
import signal
import socket
import subprocess
import threading
import time
from collections import defaultdict
from pathlib import Path

import pytest

from lib import resp, servers, shim
from lib.resp import command

PUBLISHERS = 8


class Listener:
    """A connection that subscribes and reads messages."""

    def __init__(self, server, proto, kind, *names, password=None):
        self.conn = server.conn(proto, password=password)
        self.kind = kind
        self.conn.send(command(kind, *names))
        for _ in names:
            self.conn.read()

    def message(self):
        """Returns (channel, payload) of the next message."""
        got = self.conn.read()
        assert got[0] in (b"message", b"pmessage", b"smessage"), got
        return got[-2], got[-1]

    def messages(self, count):
        return [self.message() for _ in range(count)]

    def close(self):
        self.conn.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def info(conn, field):
    text = conn.call("INFO", "everything").decode()
    return int(re.search(r"^%s:(\d+)" % field, text, re.M).group(1))


def run_all(jobs):
    """Runs functions in threads; raises their exceptions here."""
    failures = []

    def guard(job):
        try:
            job()
        except BaseException as failure:  # noqa: B902
            failures.append(failure)

    threads = [threading.Thread(target=guard, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


# ---- messages ---------------------------------------------------------------

@pytest.mark.parametrize("proto", [2, 3])
def test_every_message_once_and_in_order(start_server, proto):
    server = start_server(threads=4)
    channels = ["channel:%d" % i for i in range(40)]
    rounds = 20 if servers.sanitized() else 100
    # Over all loops: by name, by pattern, and by both.
    listeners = [Listener(server, proto, "SUBSCRIBE", *channels)
                 for _ in range(6)]
    listeners += [Listener(server, proto, "PSUBSCRIBE", "chan*")
                  for _ in range(6)]

    def publish(number):
        with server.conn() as conn:
            for turn in range(rounds):
                batch = [("PUBLISH", channels[(number * 7 + turn + i) % 40],
                          "%d:%d" % (number, turn * 10 + i))
                         for i in range(10)]
                assert conn.pipeline(batch) == [len(listeners)] * 10

    def listen(listener):
        last = defaultdict(lambda: -1)
        for _ in range(PUBLISHERS * rounds * 10):
            channel, payload = listener.message()
            who, number = map(int, payload.split(b":"))
            assert number == last[who] + 1, (who, number, last[who])
            turn, i = divmod(number, 10)
            assert channel == channels[(who * 7 + turn + i) % 40].encode()
            last[who] = number
        listener.conn.sock.settimeout(0.05)
        with pytest.raises((TimeoutError, socket.timeout)):
            listener.conn.sock.recv(1)

    run_all([lambda n=n: publish(n) for n in range(PUBLISHERS)] +
            [lambda one=one: listen(one) for one in listeners])
    with server.conn() as conn:
        assert conn.call("PUBSUB", "NUMSUB", "channel:3") == [b"channel:3", 6]
        assert conn.call("PUBSUB", "NUMPAT") == 1
        assert len(conn.call("PUBSUB", "CHANNELS", "*")) == 40
        assert info(conn, "pubsub_clients") == 12
        assert info(conn, "pubsub_channels") == 40
        assert info(conn, "pubsub_patterns") == 1
    for listener in listeners:
        listener.close()


def test_a_subscription_gets_only_the_messages_after_it(server):
    with server.conn() as publisher:
        others = [Listener(server, 3, "SUBSCRIBE", "c") for _ in range(4)]
        for turn in range(200):
            # It has its reply, and is on its way to the loops of the others.
            assert publisher.call("PUBLISH", "c", "before") == 4
            late = Listener(server, 3, "SUBSCRIBE", "c")
            assert publisher.call("PUBLISH", "c", turn) == 5
            assert late.message() == (b"c", b"%d" % turn)
            late.conn.call("UNSUBSCRIBE", "c")
            late.close()
        for other in others:
            other.close()


def test_many_channels_of_one_client(server):
    names = ["name:%d" % i for i in range(20000)]
    listener = Listener(server, 3, "SUBSCRIBE", *names)
    with server.conn() as conn:
        assert info(conn, "pubsub_channels") == len(names)
        for name in random.sample(names, 100):
            assert conn.call("PUBLISH", name, "x") == 1
            assert listener.message() == (name.encode(), b"x")
        listener.conn.send(command("UNSUBSCRIBE"))
        gone = [listener.conn.read() for _ in names]
        assert sorted(one[1].decode() for one in gone) == sorted(names)
        assert [one[2] for one in gone] == list(range(len(names) - 1, -1, -1))
        assert info(conn, "pubsub_channels") == 0
    listener.close()


def test_the_number_of_subscriptions_has_a_limit(start_server):
    server = start_server("--pubsub-max-subscriptions", 5, "--pubsub-max-bytes",
                          2000)
    with server.conn(3) as conn:
        assert conn.raw("SUBSCRIBE", "a").startswith(b">3")
        conn.send(command("PSUBSCRIBE", "a", "b", "c"))
        for _ in range(3):
            conn.read()
        refused = conn.call("SSUBSCRIBE", "a", "b")
        assert "pubsub-max-subscriptions" in str(refused)
        assert conn.call("PUBSUB", "SHARDCHANNELS") == []  # all or none
        conn.send(command("SUBSCRIBE", "a", "x" * 1900))
        assert [conn.read()[2] for _ in range(2)] == [4, 5]
        conn.call("PUNSUBSCRIBE", "a")
        assert isinstance(conn.call("SUBSCRIBE", "y" * 100), resp.Error)
        assert conn.call("PUNSUBSCRIBE", "b")[2] == 3
        assert conn.call("SUBSCRIBE", "y" * 10)[2] == 4
        assert conn.call("CONFIG", "SET", "pubsub-max-subscriptions",
                         100) == b"OK"
        assert conn.call("SSUBSCRIBE", "b")[2] == 1


# ---- those who do not read --------------------------------------------------

def test_a_client_that_does_not_read_is_cut_others_do_not_wait(start_server):
    server = start_server("--client-output-buffer-limit",
                          "pubsub 2mb 0 0 normal 64mb 16mb 30")
    payload = "x" * 10000
    slow = [Listener(server, 3, "SUBSCRIBE", "c") for _ in range(4)]
    monitor = server.conn()
    assert monitor.call("MONITOR") == b"OK"
    good = [Listener(server, 2, "PSUBSCRIBE", "*") for _ in range(4)]
    count = 3000
    done = []
    heard = [0] * len(good)

    def publish():
        with server.conn() as conn:
            for number in range(count):
                # The good ones read, but may not get a processor for a while.
                servers.wait_until(lambda: number - min(heard) < 50, 30,
                                   "the good ones read", pause=0.001)
                conn.raw("PUBLISH", "c", "%d:%s" % (number, payload))
            done.append(info(conn, "client_output_buffer_limit_disconnections"))

    def listen(index):
        for number in range(count):
            got = good[index].message()[1]
            assert got.startswith(b"%d:" % number)
            heard[index] += 1

    run_all([publish] + [lambda n=n: listen(n) for n in range(len(good))])
    assert done == [5]
    with server.conn() as conn:
        servers.wait_until(
            lambda: conn.call("PUBSUB", "NUMSUB", "c") == [b"c", 0],
            what="they have left")
        assert conn.call("PUBSUB", "NUMPAT") == 1
        assert b"flags=O" not in conn.call("CLIENT", "LIST")
    for listener in slow + good:
        listener.close()
    monitor.close()


def test_the_soft_limit_of_the_class_cuts_after_its_time(start_server):
    server = start_server("--client-output-buffer-limit", "pubsub 0 100kb 1")
    slow = Listener(server, 3, "SUBSCRIBE", "c")
    slow.conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    with server.conn() as conn:
        for _ in range(200):  # more than the sockets hold
            conn.raw("PUBLISH", "c", "x" * 100000)
        servers.wait_until(
            lambda: info(conn, "client_output_buffer_limit_disconnections"),
            what="it is cut")
        servers.wait_until(
            lambda: conn.call("PUBSUB", "NUMSUB", "c") == [b"c", 0],
            what="it has left")
    slow.close()


def test_more_messages_than_a_loop_may_keep_cut_its_subscribers(start_server):
    """A transaction makes more messages at once than may wait."""
    server = start_server("--notice-buffer-limit", "1mb", threads=2)
    listeners = [Listener(server, 3, "SUBSCRIBE", "c") for _ in range(4)]
    with server.conn() as conn:
        bystander = server.conn()
        assert bystander.call("PING") == b"PONG"
        conn.send(command("MULTI") +
                  command("PUBLISH", "c", "x" * 100000) * 20 + command("EXEC"))
        for _ in range(21):
            conn.read()
        assert conn.read() == [4] * 20
        for listener in listeners:
            with pytest.raises(resp.Closed):
                while True:
                    listener.message()
            listener.close()
        assert info(conn, "notices_lost") > 0
        servers.wait_until(
            lambda: conn.call("PUBSUB", "NUMSUB", "c") == [b"c", 0],
            what="they have left")
        assert bystander.call("PING") == b"PONG"
        bystander.close()
        again = Listener(server, 3, "SUBSCRIBE", "c")
        assert conn.call("PUBLISH", "c", "y") == 1
        assert again.message() == (b"c", b"y")
        again.close()


@pytest.mark.parametrize("threads", [1, 2])
def test_a_fast_publisher_keeps_the_pace_of_its_readers(start_server, threads):
    """It sends far more than may wait at once; no reader is cut for that."""
    server = start_server("--notice-buffer-limit", "1mb", threads=threads)
    listeners = [Listener(server, 3, "SUBSCRIBE", "c") for _ in range(12)]
    bystander = server.conn()
    count = 60000
    message = b">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$10\r\n0123456789\r\n"

    def publish():
        with server.conn() as conn:
            conn.send(command("PUBLISH", "c", "0123456789") * count)
            for _ in range(count):
                assert conn.read() == len(listeners)

    def listen(listener):
        missing = count * len(message)
        while missing > 0:
            got = len(listener.conn.sock.recv(1 << 20))
            assert got > 0, "cut"
            missing -= got
        assert missing == 0

    run_all([publish] + [lambda one=one: listen(one) for one in listeners])
    assert info(bystander, "notices_lost") == 0
    for each in listeners + [bystander]:
        each.close()


def test_one_message_larger_than_the_buffers_arrives(start_server):
    server = start_server("--notice-buffer-limit", "1mb", threads=2)
    with Listener(server, 3, "SUBSCRIBE", "c") as listener, \
            server.conn() as conn:
        payload = b"x" * 3000000
        for _ in range(3):
            assert conn.call("PUBLISH", "c", payload) == 1
            assert listener.message() == (b"c", payload)
        assert info(conn, "notices_lost") == 0


def test_subscribers_come_and_go_in_storms(start_server):
    server = start_server(threads=4)
    stays = Listener(server, 3, "PSUBSCRIBE", "*")
    stop = threading.Event()
    published = [0] * 4

    def storm(seed):
        choose = random.Random(seed)
        while not stop.is_set():
            conn = server.conn(choose.choice((2, 3)))
            kind = choose.choice(("SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE"))
            conn.send(command(kind, *["c%d" % choose.randrange(20)
                                      for _ in range(choose.randrange(1, 9))]))
            end = choose.randrange(4)
            if end == 0:
                conn.send(command("RESET"))
            elif end == 1:
                conn.send(command("UNSUBSCRIBE"))
                conn.read()
            elif end == 2:
                conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                     b"\1\0\0\0\0\0\0\0")
            conn.close()

    def publish(number):
        with server.conn() as conn:
            ends = time.monotonic() + 2
            while time.monotonic() < ends:
                name = "c%d" % random.randrange(20)
                assert all(count > 0 for count in conn.pipeline(
                    [("PUBLISH", name, "%d" % number)] * 10))
                assert conn.call("SPUBLISH", name, "s") >= 0
                published[number] += 10

    def listen():
        heard = [0] * 4
        while not stop.is_set() or heard != published:
            heard[int(stays.message()[1])] += 1

    def publish_all():
        try:
            run_all([lambda n=n: publish(n) for n in range(4)])
        finally:
            published[0] += 1
            stop.set()
            with server.conn() as conn:  # so that the listener checks again
                conn.call("PUBLISH", "c", "0")

    run_all([publish_all, listen] +
            [lambda seed=seed: storm(seed) for seed in range(6)])
    with server.conn() as conn:
        servers.wait_until(lambda: info(conn, "pubsub_clients") == 1,
                           what="all others are gone")
        assert info(conn, "pubsub_channels") == 0
        assert info(conn, "pubsubshard_channels") == 0
        assert info(conn, "pubsub_patterns") == 1
    stays.close()


# ---- who may, and for how long ----------------------------------------------

def test_subscribing_needs_the_password(start_server):
    server = start_server("--requirepass", "secret")
    with server.conn() as conn:
        for words in (("SUBSCRIBE", "a"), ("PSUBSCRIBE", "*"), ("MONITOR",),
                      ("SSUBSCRIBE", "a"), ("PUBLISH", "a", "b"),
                      ("PUBSUB", "CHANNELS"), ("UNSUBSCRIBE",)):
            assert "NOAUTH" in str(conn.call(*words))
    listener = Listener(server, 3, "SUBSCRIBE", "a", password="secret")
    listener.conn.raw("RESET")  # and no message arrives any more
    with server.conn(password="secret") as conn:
        assert conn.call("PUBLISH", "a", "b") == 0
    listener.close()


def test_subscribers_and_monitors_are_never_idle(start_server):
    server = start_server("--timeout", 1)
    listener = Listener(server, 3, "SUBSCRIBE", "c")
    monitor = server.conn()
    assert monitor.call("MONITOR") == b"OK"
    idle = server.conn()
    idle.timeout = 10 * servers.time_factor()
    assert idle.read_to_close() == b""  # the others have been idle as long
    time.sleep(1.2)
    with server.conn() as conn:
        assert conn.call("PUBLISH", "c", "x") == 1
        assert listener.message() == (b"c", b"x")
        assert b'"PUBLISH" "c" "x"' in monitor.read()
    listener.conn.raw("UNSUBSCRIBE", "c")
    listener.conn.timeout = 10 * servers.time_factor()
    assert listener.conn.read_to_close() == b""
    monitor.close()


def test_monitor_shows_the_commands_of_all_loops(start_server):
    server = start_server(threads=4)
    monitor = server.conn()
    assert monitor.call("MONITOR") == b"OK"
    count = 500

    def work(number):
        with server.conn() as conn:
            replies = conn.pipeline([("BF.ADD", "k%d" % number, "%d" % i)
                                     for i in range(count)])
            assert len(replies) == count

    run_all([lambda n=n: work(n) for n in range(6)])
    last = defaultdict(lambda: -1)
    for _ in range(6 * count):
        line = shlex.split(monitor.read().decode())
        assert line[3] == "BF.ADD"
        assert int(line[5]) == last[line[4]] + 1
        last[line[4]] += 1
    monitor.close()


def test_monitor_names_the_socket_file(start_server):
    server = start_server("--unixsocket", "{folder}/s")
    path = os.path.join(server.folder, "s")
    monitor = server.conn()
    assert monitor.call("MONITOR") == b"OK"
    with resp.Conn(path) as conn:
        conn.call("PING")
    assert (" [0 unix:%s] \"PING\"" % path).encode() in monitor.read()
    monitor.close()


# ---- events of keys ---------------------------------------------------------

def events_of(server, listener):
    """Returns the events so far, (channel, payload), up to a mark."""
    with server.conn() as conn:
        mark = b"mark %d" % time.monotonic_ns()
        conn.call("PUBLISH", "__keymark__", mark)
    out = []
    while True:
        got = listener.message()
        if got == (b"__keymark__", mark):
            return out
        if got[0] != b"__keymark__":  # another listener caused it
            out.append(got)


EVENTS = {
    "KEA": ("bloom.add", "bloom.reserve", "expire", "persist", "rename_from",
            "rename_to", "del"),
    "Kg": ("bloom.add", "bloom.reserve", "expire", "persist", "rename_from",
           "rename_to", "del"),
    "Ed": (), "Ex": (), "g": (), "K": (), "": (),
}


@pytest.mark.parametrize("letters", EVENTS)
def test_events_follow_the_option(start_server, letters):
    server = start_server("--notify-keyspace-events", letters)
    listener = Listener(server, 3, "PSUBSCRIBE", "__key*")
    expected = []
    for event in EVENTS[letters]:
        key = "l" if event in ("rename_to", "del") else "k"
        if "K" in letters:
            expected.append(("__keyspace@2__:" + key, event))
        if "E" in letters:
            expected.append(("__keyevent@2__:" + event, key))
    with server.conn() as conn:
        conn.call("SELECT", 2)
        for words in (("BF.ADD", "k", "x"), ("BF.ADD", "k", "x"),
                      ("EXPIRE", "k", 100), ("PERSIST", "k"),
                      ("RENAME", "k", "l"), ("DEL", "l"), ("DEL", "l")):
            assert not isinstance(conn.call(*words), resp.Error), words
    got = [(a.decode(), b.decode()) for a, b in events_of(server, listener)]
    assert got == expected
    listener.close()


def test_an_expired_event_comes_once_from_timer_or_access(start_server):
    server = start_server("--notify-keyspace-events", "Ex")
    listener = Listener(server, 3, "PSUBSCRIBE", "__key*")
    with server.conn() as conn:
        conn.call("BF.ADD", "timer", "x")
        conn.call("PEXPIRE", "timer", 20)
        assert listener.message() == (b"__keyevent@0__:expired", b"timer")
        for turn in range(20):  # from the timer or the access: once
            key = "access:%d" % turn
            conn.call("BF.ADD", key, "x")
            conn.call("PEXPIRE", key, 1)
            time.sleep(0.002)
            assert conn.call("BF.ADD", key, "x") == 1
            assert listener.message() == (b"__keyevent@0__:expired",
                                          key.encode())
        assert events_of(server, listener) == []
    listener.close()


def cat(path):
    tool = Path(servers.server_binary()).parent / "bloomery-check"
    return subprocess.run([tool, "cat", path], check=True,
                          stdout=subprocess.PIPE).stdout.decode()


def test_events_of_a_key_come_in_the_order_of_the_journal(start_server,
                                                          tmp_path):
    server = start_server("--appendonly", "yes", "--appendfsync", "no", "--dir",
                          tmp_path, "--notify-keyspace-events", "KEA",
                          "--auto-aof-rewrite-percentage", 0, threads=4)
    keys = ["a", "b", "c"]
    with server.conn() as conn:
        for key in keys:
            conn.call("BF.RESERVE", key, "0.01", 100000)
    listeners = [Listener(server, 3, "PSUBSCRIBE", "__keyspace*",
                          "__keymark__") for _ in range(3)]
    rounds = 100 if servers.sanitized() else 400

    def write(number):
        choose = random.Random(number)
        with server.conn() as conn:
            for turn in range(rounds):
                key = choose.choice(keys)
                conn.pipeline([choose.choice((
                    ("BF.ADD", key, "%d:%d:%d" % (number, turn, i)),
                    ("EXPIRE", key, 1000 + choose.randrange(1000)),
                    ("PERSIST", key),
                    ("BF.MADD", key, "%d-%d" % (number, turn), "%d" % i),
                    ("COPY", key, "x" + key, "REPLACE"),
                )) for i in range(5)])

    run_all([lambda n=n: write(n) for n in range(6)])
    names = {"BF.ADD": "bloom.add", "BF.MADD": "bloom.add",
             "PEXPIREAT": "expire", "PERSIST": "persist"}
    told = []
    for listener in listeners:
        per_key = defaultdict(list)
        for channel, event in events_of(server, listener):
            key = channel.decode().split(":", 1)[1]
            if key in keys:
                per_key[key].append(event.decode())
        told.append(per_key)
        listener.close()
    server.stop(signal.SIGTERM)
    written = defaultdict(list)
    for path in sorted((tmp_path / "journal").glob("incr-*")):
        for line in cat(path).splitlines():
            words = shlex.split(line)
            if words[0] in names and words[1] in keys:
                written[words[1]].append(names[words[0]])
    assert sum(map(len, written.values())) > rounds
    for per_key in told:
        for key in keys:
            assert per_key[key] == written[key]


def test_an_event_is_not_sent_before_its_change_is_durable(start_server,
                                                           tmp_path):
    faults = shim.Shim(str(tmp_path), tmp_path / "data")
    (tmp_path / "data").mkdir()
    server = start_server("--appendonly", "yes", "--appendfsync", "always",
                          # a new base makes changes durable, too
                          "--auto-aof-rewrite-percentage", "0",
                          "--dir", tmp_path / "data",
                          "--notify-keyspace-events", "KEA", env=faults.env())
    listeners = [Listener(server, proto, "PSUBSCRIBE", "__keyevent*", "c")
                 for proto in (2, 3) for _ in range(3)]
    with server.conn() as conn, server.conn() as other:
        delay_ms = 400
        faults.arm(0, "delay", ["sync"], ["incr"], flags=shim.FOR_GOOD,
                   delay_ms=delay_ms)
        for turn in range(3):
            began = time.monotonic()
            conn.send(command("BF.ADD", "k", "%d" % turn) +
                      command("PUBLISH", "c", "done"))
            # An unrelated client does not wait.
            assert other.call("PING") == b"PONG"
            for listener in listeners:
                expected = [(b"__keyevent@0__:bloom.add", b"k")]
                if turn == 0:
                    expected.append((b"__keyevent@0__:bloom.reserve", b"k"))
                expected.append((b"c", b"done"))
                assert listener.messages(len(expected)) == expected
            took_ms = (time.monotonic() - began) * 1000
            assert took_ms >= delay_ms
            assert [conn.read(), conn.read()] == [1, len(listeners)]
        faults.disarm(0)
    for listener in listeners:
        listener.close()
    server.stop()
    faults.close()
