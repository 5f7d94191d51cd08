# SPDX-License-Identifier: BSD-3-Clause
#
# Random BF commands, valid and invalid, compared with a model of each dialect
# (lib/bf_model.py), byte for byte. First the model itself is compared with the
# recording of RedisBloom and the figures of valkey-bloom.
#
#   make model ROUNDS=500000 [SEED=7] [MODE=asan]
#
# sends that many commands in each dialect, for each layout. Several connections
# of both protocols send them, as pipelines and as transactions, in pieces that
# end anywhere. Between two pieces of one connection others have their turn.

import os
import random
import re

import pytest

from lib import bf_filter, bf_model, bf_words, resp, servers

from test_vectors import calls

ROUNDS = int(os.environ.get("ROUNDS") or
             ("2000" if servers.sanitized() else "20000"))
BATCH = 40

# Errors that any run of MANY commands meets.
MANY = 100000
TEXTS = {
    "valkey": [
        b"ERROR", b"(0 < error rate range", b"(0 < tightening ratio range",
        b"(capacity should be", b"bad capacity", b"bad error rate",
        b"bad expansion", b"bad tightening", b"false positive degrades to 0 on",
        b"invalid information", b"invalid seed", b"item exists", b"not found",
        b"non scaling filter is full", b"object memory limit",
        b"causes bloom object to exceed", b"causes false positive",
        b"unknown argument", b"cannot use NONSCALING", b"arguments for 'BF."],
    "redis": [
        b"Bad capacity", b"Bad error rate", b"Bad expansion",
        b"ERR bad capacity", b"ERR bad error rate", b"ERR bad expansion",
        b"capacity must be in", b"error rate must be in",
        b"expansion must be in", b"item exists", b"no expansion", b"not found",
        b"non scaling filter is full", b"object memory limit",
        b"problem inserting", b"Invalid information", b"Nonscaling filters",
        b"Unknown argument", b"arguments for 'bf.", b"could not create"],
}


# ---- the model against what was recorded ---------------------------------------

def same_sizes(reply):
    """Without what is our own layout's, and its name."""
    reply = re.sub(rb"\$\d+\r\nsize:(\d+)( layout:native)?", rb"\1", reply)
    return re.sub(rb"\$\d+\r\nbytes:\d+ bits:\d+ hashes:\d+|"
                  rb"(?<=Size\r\n):\d+", b"?", reply)


def test_the_model_answers_as_redisbloom_did():
    """All calls to filters; what was no filter there is left out."""
    model = bf_model.Model("redis")
    count = 0
    for argv, proto, theirs in calls():
        words = [resp.as_bytes(word) for word in argv]
        name = words[0].upper()
        if name == b"FLUSHALL":
            model = bf_model.Model("redis")
        if name not in model.commands() or not name.startswith(b"BF.") or \
                b"str" in words or b"SIZE" in [w.upper() for w in words]:
            continue
        ours = model.answer(theirs, proto, words)
        assert same_sizes(ours) == same_sizes(theirs), words
        count += 1
    assert count > 150


@pytest.mark.parametrize("capacity,rate,expansion,most,layers", [
    (100, 0.01, 2, 26214300, 18), (10000, 0.001, 2, 20470000, 11),
    (100, 1e-8, 2, 13107100, 17), (100, 0.01, 1, 101600, 1016),
    (1000, 0.01, 2, 32767000, 15), (100000, 0.01, 2, 51100000, 9),
    (1000, 0.01, 4, 21845000, 8)])
def test_the_model_scales_as_valkey_bloom(capacity, rate, expansion, most,
                                          layers):
    probe = bf_filter.Filter(capacity, rate, 0.5, expansion, None)
    assert probe.project(bf_filter.LIMIT) == most
    assert sum(capacity * expansion ** i for i in range(layers)) == most


# ---- the server against the model ------------------------------------------------

class Talk:
    """A server, its model, and two connections in each protocol."""

    def __init__(self, server, dialect, layout, rng):
        self.model = bf_model.Model(dialect, layout)
        self.conns = [(proto, server.conn(proto)) for proto in (2, 3, 2, 3)]
        self.errors, self.seen, self.layers = 0, set(), 0
        self.rng, self.transactions, self.aborted = rng, 0, 0

    def close(self):
        for _, conn in self.conns:
            conn.close()

    def post(self, conn, data):
        """Sends bytes, sometimes in pieces."""
        most = self.rng.choice([len(data) + 1] * 6 + [3, 40, 500])
        while data:
            count = self.rng.randrange(most) + 1
            conn.send(data[:count])
            data = data[count:]

    def compare(self, proto, words, reply):
        wanted = self.model.answer(reply, proto, words)
        assert reply == wanted, "%r (RESP%d)\n  server %r\n  model  %r" % (
            words, proto, reply[:2000], wanted[:2000])
        self.errors += reply.startswith(b"-")
        self.seen.update(re.findall(rb"(?m)^-([^\r]*)", reply))

    def pipeline(self, at, batch, others):
        """Sends all and compares each reply. If there are others, they have
        their turn when a part of a command has been sent."""
        proto, conn = self.conns[at]
        bytes_of = [resp.command(*words) for words in batch]
        first = self.rng.randrange(len(batch)) if others else len(batch)
        part = b""
        if others:
            part = bytes_of[first][:self.rng.randrange(len(bytes_of[first]))]
        self.post(conn, b"".join(bytes_of[:first]) + part)
        for words in batch[:first]:
            self.compare(proto, words, conn.read_raw())
        if others:
            self.send((at + 1 + self.rng.randrange(3)) % 4, others)
            self.post(conn, b"".join(bytes_of[first:])[len(part):])
        for words in batch[first:]:
            self.compare(proto, words, conn.read_raw())

    def transaction(self, at, batch, ends):
        """Sends all between MULTI and EXEC or DISCARD. An error of the queue
        is one that the command has anyway, and changes nothing."""
        proto, conn = self.conns[at]
        self.post(conn, b"".join(resp.command(*words) for words in
                                 [[b"MULTI"], *batch, [ends]]))
        assert conn.read_raw() == b"+OK\r\n"
        queued = [(words, conn.read_raw()) for words in batch]
        refused = [pair for pair in queued if pair[1] != b"+QUEUED\r\n"]
        for words, reply in refused:
            assert reply.startswith(b"-"), (words, reply)
            self.compare(proto, words, reply)
        end = conn.read_raw()
        if ends == b"DISCARD":
            assert end == b"+OK\r\n"
        elif refused:
            assert end == b"-EXECABORT Transaction discarded because of " \
                b"previous errors.\r\n"
            self.aborted += 1
        else:
            self.replies(proto, batch, end)
            self.transactions += 1

    def replies(self, proto, batch, reply):
        """Compares the replies of an EXEC."""
        start = reply.index(b"\n") + 1
        assert reply[:start] == b"*%d\r\n" % len(batch)
        for words in batch:
            end = resp.reply_end(reply, start)
            self.compare(proto, words, reply[start:end])
            start = end
        assert start == len(reply)

    def send(self, at, batch, others=()):
        """Sends a batch over the connection of this number."""
        ends = self.rng.choice([None] * 8 + [b"EXEC", b"EXEC", b"DISCARD"])
        if ends is None:
            self.pipeline(at, batch, others)
        else:
            count = self.rng.randrange(1, 9)
            self.transaction(at, batch[:count], ends)
            if batch[count:]:
                self.pipeline(at, batch[count:], others)
        self.layers = max([self.layers] + [
            len(f.layers) for f in self.model.filters.values()])
        if self.model.unsettled is not None:
            self.settle(self.conns[at][1])

    def settle(self, conn):
        """How many items a union has only the server can estimate."""
        key = self.model.unsettled
        self.model.settle(key, [
            int(re.search(rb" size:(\d+)", layer).group(1))
            for layer in conn.call("BF.DEBUG", key)[1:]])


def next_batch(words, most=BATCH):
    """Up to MOST commands; a union is the last one."""
    batch = []
    while len(batch) < most:
        batch.append(words.command())
        if batch[-1][0].upper() == b"BF.MERGE":
            break
    return batch


@pytest.mark.parametrize("layout", ["native", "redisbloom", "valkeybloom"])
@pytest.mark.parametrize("dialect", ["valkey", "redis"])
def test_random_commands_are_answered_as_the_model_says(start_server, dialect,
                                                        layout):
    """In the runs of the modules' layouts, CONFIG SET also changes the layout."""
    seed = int(os.environ.get("SEED") or random.getrandbits(32))
    print("SEED=%d ROUNDS=%d" % (seed, ROUNDS))
    rng = random.Random("%d %s %s" % (seed, dialect, layout))
    words = bf_words.Words(rng, dialect, [] if layout == "native" else [
        layout.encode(), layout.encode(), b"native"])
    talk = Talk(start_server("--dialect", dialect, "--appendonly", "no",
                             "--bloom-layout", layout,
                             "--bf.bloom-memory-usage-limit", 1 << 24),
                dialect, layout, rng)
    talk.model.limit = 1 << 24
    done = 0
    while done < ROUNDS:
        batch = next_batch(words)
        others = next_batch(words, rng.randrange(1, 10)) \
            if rng.randrange(4) == 0 and batch[-1][0].upper() != b"BF.MERGE" \
            else []
        talk.send(rng.randrange(4), batch, others)
        done += len(batch)
    talk.close()
    model = talk.model
    print("%d commands, %d errors, %d false positives, %.1f expected, "
          "%d transactions, %d aborted" % (
              done, talk.errors, model.false_positives, model.expected,
              talk.transactions, talk.aborted))
    assert done / 20 < talk.errors < done / 2, "the dice are loaded"
    assert model.false_positives < 2 * model.expected + 30
    assert model.false_positives > model.expected / 2 - 30
    if done < MANY:
        return
    assert talk.transactions > 100 and talk.aborted > 10
    missing = [text for text in TEXTS[dialect] if not any(
        text in seen for seen in talk.seen)]
    assert not missing, "errors that no command met"
    assert talk.layers > 8
