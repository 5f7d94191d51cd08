# SPDX-License-Identifier: BSD-3-Clause
#
# Key events of every command that Redis has too: the same events in the same order,
# on both kinds of channel, as redis-server sends them. Only the event of a new key
# has another name (set there, bloom.add here).

import pytest

from lib import resp

MADE_BY = (b"set", b"bloom.add", b"bloom.reserve")

SCRIPTS = {
    "del": ["make a", "make b", "DEL a b a missing", "DEL missing",
            "make a", "UNLINK a"],
    "expire": ["make a", "EXPIRE a 100", "PEXPIRE a 100000", "EXPIREAT a 1",
               "make a", "EXPIRE a -1", "make a", "PEXPIREAT a 9000000000000",
               "EXPIRE a 5 NX", "EXPIRE a 5 LT", "PERSIST a", "PERSIST a",
               "EXPIRE missing 100", "PERSIST missing"],
    "rename": ["make a", "make b", "RENAME a a", "RENAME a c", "RENAME c b",
               "RENAMENX b b", "make d", "RENAMENX b d", "RENAMENX b e",
               "RENAME missing x", "RENAMENX missing x"],
    "copy": ["make a", "COPY a b", "COPY a b", "COPY a b REPLACE",
             "COPY a b DB 3", "COPY missing b"],
    "move": ["make a", "MOVE a 1", "make a", "MOVE a 1", "MOVE a 2",
             "MOVE missing 1"],
    "restore": ["make a", "restore b 0", "restore b 0 REPLACE", "restore b 0",
                "restore b 1 ABSTTL REPLACE", "restore c 1 ABSTTL REPLACE",
                "restore d 100000"],
    "missing keys": ["GET a", "EXISTS a b", "TOUCH a", "TYPE a", "TTL a",
                     "PTTL a", "EXPIRETIME a", "OBJECT FREQ a",
                     "OBJECT ENCODING a", "DUMP a", "DEL a", "EXPIRE a 10",
                     "PERSIST a", "MOVE a 1", "RENAME a b", "COPY a b",
                     "RANDOMKEY", "KEYS *"],
    "expired": ["make a", "make b", "make c", "make d", "make e",
                "PEXPIRE a 1", "wait a", "PEXPIRE b 1", "wait b",
                "PEXPIRE c 100000", "DEL c"],
    "whole databases": ["make a", "make b", "SWAPDB 0 1", "make a", "FLUSHDB",
                        "make a", "FLUSHALL"],
    "transaction": ["MULTI", "make a", "RENAME a b", "DEL b", "EXEC"],
}


def is_made(message):
    return message[3] in MADE_BY or message[2].split(b":", 1)[1] in MADE_BY


class Listener:
    def __init__(self, process, classes, maker):
        self.maker, self.heard = maker, []
        self.conn, self.hears = process.conn(), process.conn()
        assert self.conn.call("CONFIG", "SET", "notify-keyspace-events",
                              classes) == b"OK"
        self.hears.call("PSUBSCRIBE", "__key*__:*", "the end")
        self.hears.read()

    def run(self, script):
        for line in script:
            words = line.split()
            if words[0] == "make":
                words = self.maker(words[1])
            elif words[0] == "wait":
                self.heard_until(b"expired", words[1].encode())
                continue
            elif words[0] == "restore":
                words = ["RESTORE", words[1], words[2],
                         self.conn.call("DUMP", "a")] + words[3:]
            self.conn.call(*words)
        self.conn.call("PUBLISH", "the end", "")

    def heard_until(self, event, key):
        while [m[2:] for m in self.next()][-1] != \
                [b"__keyevent@0__:" + event, key]:
            pass

    def next(self):
        self.heard.append(self.hears.read())
        return self.heard

    def all(self, script):
        self.run(script)
        while self.next()[-1][1] != b"the end":
            pass
        return [m[2:] for m in self.heard[:-1] if not is_made(m)]

    def close(self):
        self.conn.close()
        self.hears.close()


@pytest.mark.parametrize("classes", ["KEAnm", "Kg", "Exn", "KEm"])
@pytest.mark.parametrize("name", SCRIPTS)
def test_events_equal_those_of_redis(server, oracle, name, classes):
    if name == "expired" and "x" not in classes and "A" not in classes:
        pytest.skip("its script waits for an event of class x")
    if name == "expired" and "E" not in classes:
        pytest.skip("its script waits for a keyevent")
    theirs = Listener(oracle, classes, lambda k: ["SET", k, "1"])
    ours = Listener(server, classes, lambda k: ["BF.ADD", k, "1"])
    want, got = theirs.all(SCRIPTS[name]), ours.all(SCRIPTS[name])
    assert got == want
    theirs.close()
    ours.close()


def test_no_events_when_they_are_off(server):
    listener = Listener(server, "", lambda k: ["BF.ADD", k, "1"])
    for script in SCRIPTS.values():
        if "wait a" not in script:
            listener.run(script)
    assert listener.next()[-1][1] == b"the end"
    listener.close()


def test_a_write_to_an_expired_key_sends_an_expired_event(server):
    """It sends no del event, whether the write or the timer finds the key
    first."""
    listener = Listener(server, "Exg", lambda k: ["BF.ADD", k, "1"])
    for verb in (["DEL", "k"], ["RENAME", "k", "l"], ["MOVE", "k", "1"],
                 ["PERSIST", "k"], ["EXPIRE", "k", "100"]):
        listener.conn.call("BF.ADD", "k", "1")
        listener.conn.call("PEXPIRE", "k", "1")
        while listener.conn.call("EXISTS", "k"):
            pass
        reply = listener.conn.call(*verb)
        assert reply == 0 or isinstance(reply, resp.Error)
        listener.heard = []
        listener.heard_until(b"expired", b"k")
        assert [m[2:] for m in listener.heard if not is_made(m)] == [
            [b"__keyevent@0__:expire", b"k"],
            [b"__keyevent@0__:expired", b"k"]]
    listener.close()


def test_keys_expire_after_their_client_has_left(start_server):
    """Its session has ended when the timer of the loop sends the events."""
    server = start_server(threads=1)
    with server.conn() as listener:
        listener.call("CONFIG", "SET", "notify-keyspace-events", "Ex")
        listener.call("SUBSCRIBE", "__keyevent@0__:expired")
        for i in range(20):
            key = b"k%d" % i
            with server.conn() as conn:
                conn.pipeline([["BF.ADD", key, "1"], ["PEXPIRE", key, "20"]])
            assert listener.read()[2] == key
