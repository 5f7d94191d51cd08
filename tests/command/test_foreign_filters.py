# SPDX-License-Identifier: BSD-3-Clause
#
# Filters that RedisBloom and valkey-bloom made (tests/data): each is loaded in
# every form, has all its items, and is given back bit for bit; the same commands
# make the same bytes; and all of it survives restarts and reaches replicas.

import hashlib
import json
import math
import random
import struct

import pytest

from lib import rdb, replicas, resp, servers

DATA = servers.TOP / "tests/data"
REDISBLOOM = [json.loads(path.read_text()) for path in sorted(
    (DATA / "redisbloom/filters").glob("*.json"))]
WHOLE = [one for one in REDISBLOOM if "redis7_DUMP_hex" in one]
VALKEY = json.loads((DATA / "valkey-bloom/filters.json").read_text())


def name_of(one):
    return one["name"]


def items_of(one):
    """The items that the recording says were added."""
    if one["items"] == "none":
        return []
    text = one["items"].split(" (")[0].split(";")[0]
    if " .. " in text:
        first, last = text.split(" .. ")
        stem = first.rstrip("0")
        return ["%s%d" % (stem, i)
                for i in range(int(last[len(stem):]) + 1)][:one["card"]]
    return text.split(", ")


def create_words(one, key):
    if one["create"].startswith("("):
        return ["BF.RESERVE", key, "0.01", "100"]
    words = one["create"].split(" ")
    return [words[0], key] + words[2:]


def chunks_of(conn, key):
    """What a client's backup gets: all pairs but the last, as scandump helpers
    of clients loop over them."""
    pairs, iterator = [], 0
    while True:
        iterator, data = conn.call("BF.SCANDUMP", key, iterator)
        if iterator == 0:
            assert data == b""
            return pairs
        pairs.append((iterator, data))


def load(conn, key, pairs):
    for iterator, data in pairs:
        assert conn.call("BF.LOADCHUNK", key, iterator, data) == b"OK"


def recorded(one):
    return [(c["iterator_for_load"], bytes.fromhex(c["hex"]))
            for c in one["chunks"] if c["iterator_for_load"]]


def assert_has(conn, key, items):
    if items:
        assert conn.call("BF.MEXISTS", key, *items) == [1] * len(items)


# ---- RedisBloom --------------------------------------------------------------

@pytest.mark.parametrize("one", WHOLE, ids=name_of)
def test_chunks_of_redisbloom_come_back_bit_for_bit(server, one):
    conn = server.conn()
    load(conn, "k", recorded(one))
    assert_has(conn, "k", items_of(one))
    assert conn.call("BF.CARD", "k") == one["card"]
    assert conn.call("OBJECT", "ENCODING", "k") == b"redisbloom"
    assert chunks_of(conn, "k") == recorded(one)
    debug = conn.call("BF.DEBUG", "k")
    theirs = resp.decode(one["debug"].encode())
    assert debug[0] == theirs[0] + b" layout:redisbloom"
    assert debug[1:] == theirs[1:]


@pytest.mark.parametrize("one", WHOLE, ids=name_of)
def test_payloads_of_redisbloom_load(server, one):
    conn = server.conn()
    payload = bytes.fromhex(one["redis7_DUMP_hex"])
    assert conn.call("RESTORE", "k", 0, payload) == b"OK"
    assert_has(conn, "k", items_of(one))
    assert chunks_of(conn, "k") == recorded(one)
    again = conn.call("DUMP", "k")
    if b"\xc3" not in payload:
        assert again == payload
    assert conn.call("RESTORE", "l", 0, again) == b"OK"
    assert conn.call("DUMP", "l") == again
    assert chunks_of(conn, "l") == recorded(one)


@pytest.mark.parametrize("dialect", ["redis", "valkey"])
@pytest.mark.parametrize("one", REDISBLOOM, ids=name_of)
def test_the_same_commands_make_the_bytes_of_redisbloom(start_server, dialect,
                                                        one):
    server = start_server("--dialect", "redis", "--bloom-layout", "redisbloom")
    conn = server.conn()
    assert conn.call(*create_words(one, "k")) == b"OK"
    if dialect == "valkey":
        conn.call("CONFIG", "SET", "dialect", dialect)
    for item in items_of(one):
        assert conn.call("BF.ADD", "k", item) == 1
    pairs = chunks_of(conn, "k")
    assert [(it, len(data), hashlib.sha256(data).hexdigest())
            for it, data in pairs] == [
        (c["iterator_for_load"], c["len"], c["sha256"])
        for c in one["chunks"] if c["iterator_for_load"]]
    load(conn, "l", pairs)
    assert chunks_of(conn, "l") == pairs


def test_a_filter_grows_as_in_redisbloom_after_it_was_loaded(start_server):
    """One filter is loaded after half of its items, the other made here."""
    server = start_server("--bloom-layout", "redisbloom")
    conn = server.conn()
    one = next(o for o in WHOLE if o["name"] == "scaled_cap10_e001_150")
    load(conn, "k", recorded(one))
    assert conn.call("BF.RESERVE", "l", "0.01", 10) == b"OK"
    for item in items_of(one):
        conn.call("BF.ADD", "l", item)
    for i in range(1000):
        assert conn.call("BF.ADD", "k", "more:%d" % i) == \
            conn.call("BF.ADD", "l", "more:%d" % i)
    assert len(conn.call("BF.DEBUG", "k")) > 6
    assert chunks_of(conn, "k") == chunks_of(conn, "l")


@pytest.mark.parametrize("growth", [True, False])
def test_old_headers_come_back_in_the_present_form(server, growth):
    """2.2.0 had growth, 2.0 did not; both had capacities of 4 bytes."""
    conn = server.conn()
    one = next(o for o in WHOLE if o["name"] == "default3")
    (_, header), bits = recorded(one)
    old = header[:20 if growth else 16] + header[20:68] + header[72:73]
    assert len(old) == (20 if growth else 16) + 49
    load(conn, "k", [(1, old), bits])
    assert_has(conn, "k", items_of(one))
    assert chunks_of(conn, "k") == recorded(one)


def test_an_append_only_file_of_redisbloom_can_be_piped_in(server):
    """What `redis-cli --pipe < appendonly.aof` sends: the chunks of a rewrite,
    and then commands as clients sent them."""
    one = next(o for o in WHOLE if o["name"] == "scaled_cap10_e001_150")
    commands = [("SELECT", "0")]
    commands += [("BF.LOADCHUNK", "k", str(iterator), data)
                 for iterator, data in recorded(one)]
    commands += [("PEXPIREAT", "k", "4000000000000"), ("MULTI",),
                 ("BF.ADD", "k", "more"), ("EXEC",),
                 ("BF.RESERVE", "l", "0.01", "100"), ("BF.ADD", "l", "a"),
                 ("BF.MADD", "l", "b", "c"), ("ECHO", "the end")]
    with server.conn() as conn:
        conn.call("CONFIG", "SET", "dialect", "redis")
        replies = conn.pipeline(commands)
        assert replies[-1] == b"the end"
        assert not any(isinstance(reply, resp.Error) for reply in replies)
        assert_has(conn, "k", items_of(one) + ["more"])
        assert_has(conn, "l", ["a", "b", "c"])
        assert conn.call("PEXPIRETIME", "k") == 4000000000000


# ---- filters of old versions: 32-bit hashes, and moduli that are powers of two --

def murmur2(data, seed):
    """MurmurHash2, as published in SMHasher."""
    m, mask = 0x5bd1e995, 0xffffffff
    h = seed ^ len(data)
    for at in range(0, len(data) // 4 * 4, 4):
        k = int.from_bytes(data[at:at + 4], "little") * m & mask
        k = (k ^ k >> 24) * m & mask
        h = (h * m & mask) ^ k
    tail = data[len(data) // 4 * 4:]
    if tail:
        h = (h ^ int.from_bytes(tail, "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return h ^ h >> 15


def murmur64a(data, seed):
    """MurmurHash64A, likewise."""
    m, mask = 0xc6a4a7935bd1e995, 2 ** 64 - 1
    h = seed ^ (len(data) * m & mask)
    for at in range(0, len(data) // 8 * 8, 8):
        k = int.from_bytes(data[at:at + 8], "little") * m & mask
        h = (h ^ ((k ^ k >> 47) * m & mask)) * m & mask
    tail = data[len(data) // 8 * 8:]
    if tail:
        h = (h ^ int.from_bytes(tail, "little")) * m & mask
    h = (h ^ h >> 47) * m & mask
    return h ^ h >> 47


@pytest.mark.parametrize("hashed,size,value", [
    (murmur2, 4, 0x27864C1E), (murmur64a, 8, 0x1F0D3804)])
def test_the_hashes_of_this_file_are_the_published_ones(hashed, size, value):
    """The verification values of SMHasher."""
    results = b"".join(
        hashed(bytes(range(n)), 256 - n).to_bytes(size, "little")
        for n in range(256))
    assert hashed(results, 0) & 0xffffffff == value


class OldFilter:
    """One layer, as RedisBloom's reference describes it."""

    def __init__(self, options, log2, capacity=200, rate=0.01):
        self.options, self.log2 = options, log2
        self.capacity, self.rate = capacity, rate
        self.per_item = abs(math.log(rate) / 0.480453013918201)
        self.hashes = math.ceil(0.693147180559945 * self.per_item)
        bits = 2 ** log2 if log2 else math.trunc(capacity * self.per_item)
        self.bits = math.ceil(bits / 64) * 64
        self.array = bytearray(self.bits // 8)
        self.items = 0

    def places(self, item):
        if self.options & 4:
            a = murmur64a(item, 0xc6a4a7935bd1e995)
            b = murmur64a(item, a)
        else:
            a = murmur2(item, 0x9747b28c)
            b = murmur2(item, a)
        modulus = 2 ** self.log2 if self.log2 else self.bits
        return [((a + i * b) & (2 ** 64 - 1)) % modulus
                for i in range(self.hashes)]

    def has(self, item):
        return all(self.array[x >> 3] >> (x & 7) & 1
                   for x in self.places(item))

    def add(self, item):
        if self.has(item):
            return 0
        for x in self.places(item):
            self.array[x >> 3] |= 1 << (x & 7)
        self.items += 1
        return 1

    def header(self, form):
        """form: 16 or 20 bytes in front; capacities of 4 or 8 bytes."""
        head = struct.pack("<QII", self.items, 1, self.options)
        head += struct.pack("<I", 2) if form != "1.0" else b""
        bits = 0 if form == "1.0" and self.log2 else self.bits
        head += struct.pack("<QQQddI", len(self.array), bits, self.items,
                            self.rate, self.per_item, self.hashes)
        head += struct.pack("<Q" if form == "2.2.5" else "<I", self.capacity)
        return head + bytes([self.log2])


@pytest.mark.parametrize("form", ["1.0", "2.2.0", "2.2.5"])
@pytest.mark.parametrize("options,log2", [
    (0, 0), (0, 11), (4, 0), (4, 11), (5, 0), (8, 0), (13, 11)])
def test_filters_of_old_versions_answer_as_there(start_server, form, options,
                                                 log2):
    """Every answer, also the false positives, and every bit, also of items that
    are added here."""
    seed = random.getrandbits(32)
    print("SEED=%d" % seed)
    rng = random.Random(seed)
    model = OldFilter(options, log2)
    items = [rng.randbytes(rng.randrange(40)) for _ in range(150)]
    for item in items:
        model.add(item)
    server = start_server()
    conn = server.conn()
    load(conn, "k", [(1, model.header(form)),
                     (1 + len(model.array), bytes(model.array))])
    assert_has(conn, "k", items)
    asked = [rng.randbytes(rng.randrange(20)) for _ in range(5000)]
    assert conn.call("BF.MEXISTS", "k", *asked) == [
        int(model.has(item)) for item in asked]
    for item in asked[:30]:
        assert conn.call("BF.ADD", "k", item) == model.add(item)
    assert chunks_of(conn, "k") == [
        (1, model.header("2.2.5")),
        (1 + len(model.array), bytes(model.array))]
    width = b" hashwidth:%d " % (64 if options & 4 else 32)
    assert width in conn.call("BF.DEBUG", "k")[1]
    payload = conn.call("DUMP", "k")
    assert conn.call("RESTORE", "l", 0, payload) == b"OK"
    assert chunks_of(conn, "l") == chunks_of(conn, "k")
    assert conn.call("BF.MEXISTS", "l", *asked) == [
        int(model.has(item)) for item in asked]


# ---- valkey-bloom --------------------------------------------------------------

@pytest.mark.parametrize("one", VALKEY, ids=name_of)
def test_filters_of_valkey_bloom_come_back_bit_for_bit(server, one):
    conn = server.conn()
    dump = bytes.fromhex(one["dump_rdb11_uncompressed"])
    assert conn.call("BF.LOAD", "k", bytes.fromhex(one["bf_load"])) == b"OK"
    assert conn.call("RESTORE", "l", 0, dump) == b"OK"
    for key in "kl":
        assert_has(conn, key, one["items"])
        assert conn.call("DUMP", key) == dump
        assert conn.call("OBJECT", "ENCODING", key) == b"valkeybloom"
    assert conn.raw("BF.LOAD", "k", bytes.fromhex(one["bf_load"])) == \
        b"-BUSYKEY Target key name already exists.\r\n"
    load(conn, "m", chunks_of(conn, "k"))
    assert conn.call("DUMP", "m") == dump


@pytest.mark.parametrize("one", VALKEY, ids=name_of)
def test_the_same_commands_make_the_bytes_of_valkey_bloom(start_server, one):
    server = start_server("--bloom-layout", "valkeybloom")
    conn = server.conn()
    scaling = ["EXPANSION", one["expansion"]] if one["expansion"] else [
        "NONSCALING"]
    assert conn.call("BF.INSERT", "k", "ERROR", one["error"], "CAPACITY",
                     one["capacity"], "TIGHTENING", one["tightening"], "SEED",
                     bytes.fromhex(one["seed"]), *scaling) == []
    for item, reply in zip(one["items"], one["replies"]):
        assert conn.call("BF.ADD", "k", item) == reply
    assert conn.call("DUMP", "k").hex() == one["dump_rdb11_uncompressed"]


def test_damaged_payloads_are_refused_and_nothing_is_lost(server):
    conn = server.conn()
    rng = random.Random(7)
    good = bytes.fromhex(VALKEY[1]["bf_load"])
    assert conn.call("BF.ADD", "k", "kept") == 1
    payload = bytes.fromhex(VALKEY[1]["dump_rdb11_uncompressed"])
    for at in range(len(payload)):
        damaged = bytearray(payload)
        damaged[at] ^= 1 << rng.randrange(8)
        reply = conn.raw("RESTORE", "k", 0, bytes(damaged), "REPLACE")
        assert reply == (b"-ERR DUMP payload version or checksum are wrong"
                         b"\r\n"), at
    for end in range(len(good)):
        reply = conn.raw("BF.LOAD", "l", good[:end])
        assert reply == b"-ERR bloom object decoding failed\r\n", end
    assert conn.raw("BF.LOAD", "l", b"\x02" + good[1:]) == \
        b"-ERR bloom object decoding failed. Unsupported version\r\n"
    assert conn.call("BF.EXISTS", "k", "kept") == 1
    assert conn.call("DBSIZE") == 1


def test_figures_beyond_all_bounds_keep_the_sums_right(server):
    """A filter that says it has room for 2^62 items, and has nearly as many."""
    conn = server.conn()
    value = rdb.dumps()[0].payload[:-10]
    three, room = b"\x02\x03", b"\x02\x40\x64"
    assert value.count(room) == 1 and value.startswith(three, 10)
    assert value.endswith(three + b"\0")
    huge = b"\x02\x81" + struct.pack(">Q", 1 << 62)
    items = b"\x02\x81" + struct.pack(">Q", (1 << 62) - 9)
    value = value[:10] + items + value[12:-3].replace(room, huge) + items + b"\0"

    def sums():
        got = replicas.parse_info(conn.call("INFO", "bf"))
        return [int(got["bf_bloom_" + name])
                for name in ("capacity_across_objects",
                             "num_items_across_objects")]

    conn.call("BF.RESERVE", "small", "0.01", "100")
    conn.call("BF.ADD", "small", "a")
    assert sums() == [100, 1]
    assert conn.call("RESTORE", "huge", "0", rdb.dump(value)) == b"OK"
    for key in range(4):
        assert conn.call("COPY", "huge", str(key)) == 1
    most = 1 << 44
    assert sums() == [5 * most + 100, 5 * most + 1]
    assert conn.call("BF.MADD", "huge", "x", "y") == [1, 1]
    assert conn.call("BF.ADD", "huge", "z") == 1
    assert sums() == [5 * most + 100, 5 * most + 1]
    assert conn.call("BF.INFO", "huge", "CAPACITY") == 1 << 62
    assert conn.call("DEL", "huge", *range(4)) == 5
    assert sums() == [100, 1]


# ---- chunks --------------------------------------------------------------------

def fill(conn, key, items=3000):
    assert conn.call("BF.RESERVE", key, "0.01", 100) == b"OK"
    conn.call("BF.MADD", key, *["item:%d" % i for i in range(items)])


@pytest.mark.parametrize("dialect", ["valkey", "redis"])
@pytest.mark.parametrize("layout", ["native", "redisbloom", "valkeybloom"])
def test_chunks_in_any_order_cut_and_repeated(start_server, layout, dialect):
    seed = random.getrandbits(32)
    print("SEED=%d" % seed)
    rng = random.Random(seed)
    server = start_server("--bloom-layout", layout, "--dialect", dialect)
    conn = server.conn()
    fill(conn, "k")
    (one, header), *data = chunks_of(conn, "k")
    pieces = []
    for iterator, chunk in data:
        at = 0
        while at < len(chunk):
            end = min(len(chunk), at + rng.randrange(1, 500))
            pieces.append((iterator - len(chunk) + end, chunk[at:end]))
            at = end
    rng.shuffle(pieces)
    load(conn, "l", [(one, header)])
    for i, piece in enumerate(pieces):
        assert conn.raw("BF.ADD", "l", "x").startswith(
            b"-ERR the filter is incomplete"), i
        load(conn, "l", [piece] * rng.randrange(1, 3))
    assert chunks_of(conn, "l") == chunks_of(conn, "k")
    assert conn.call("BF.CARD", "l") == conn.call("BF.CARD", "k")
    dumps = [conn.call("DUMP", key) for key in "kl"]
    if layout == "native":      # but for the incarnations, and the checksums
        dumps = [dump[:64] + dump[72:-8] for dump in dumps]
    assert dumps[0] == dumps[1]


@pytest.mark.parametrize("dialect", ["valkey", "redis"])
@pytest.mark.parametrize("layout", ["native", "redisbloom", "valkeybloom"])
def test_any_iterator_is_answered(start_server, layout, dialect):
    """All iterators of a short stream, and random ones of 64 bits."""
    seed = random.getrandbits(32)
    print("SEED=%d" % seed)
    rng = random.Random(seed)
    server = start_server("--bloom-layout", layout, "--dialect", dialect)
    conn = server.conn()
    fill(conn, "k", 300)
    pairs = chunks_of(conn, "k")
    stream = b"".join(data for _, data in pairs[1:])
    ends = [it - 1 for it, _ in pairs[1:]]
    numbers = [-2 ** 63, -1, len(stream), len(stream) + 1, len(stream) + 2,
               2 ** 63 - 1]
    wide = [rng.randrange(-2 ** 63, 2 ** 63) for _ in range(300)]
    for number in numbers + list(range(1, len(stream) + 5)) + wide:
        iterator, data = conn.call("BF.SCANDUMP", "k", number)
        end = next((e for e in ends if number - 1 < e), None)
        if number < 1 or end is None:
            assert (iterator, data) == (0, b""), number
        else:
            assert (iterator, data) == (end + 1, stream[number - 1:end]), number
    for number in numbers + list(range(-5, len(stream) + 45)) + wide:
        chunk = bytes(rng.randrange(40))
        reply = conn.raw("BF.LOADCHUNK", "k", number, chunk)
        offset = number - len(chunk) - 1
        end = next((e for e in ends if 0 <= offset < e), None)
        if number <= 0 or number < len(chunk):
            assert reply == b"-ERR received bad data\r\n", number
        elif end is None:
            assert reply == b"-ERR invalid offset - no link found\r\n", number
        elif offset + len(chunk) > end:
            assert reply == (b"-ERR invalid chunk - Too big for current filter"
                             b"\r\n"), number
        elif stream[offset:offset + len(chunk)] == chunk:
            assert reply == b"+OK\r\n", number
        else:
            assert reply == b"-ERR received bad data\r\n", number
    assert chunks_of(conn, "k") == pairs
    load(conn, "other name", pairs)
    assert chunks_of(conn, "other name") == pairs
    assert conn.raw("BF.LOADCHUNK", "k", *pairs[0]) == \
        b"-ERR received bad data\r\n"
    for number in wide:     # no filter, no header
        assert conn.raw("BF.SCANDUMP", "missing", number) == \
            b"-ERR not found\r\n"
        assert conn.raw("BF.LOADCHUNK", "missing", number, b"x") == \
            b"-ERR not found\r\n"


def test_too_many_gaps_are_refused(server):
    conn = server.conn()
    fill(conn, "k")
    (_, header), *_ = chunks_of(conn, "k")
    load(conn, "l", [(1, header)])
    for i in range(256):
        assert conn.call("BF.LOADCHUNK", "l", 2 * i + 2, b"\0") == b"OK"
    assert conn.raw("BF.LOADCHUNK", "l", 1000, b"\0") == (
        b"-ERR too many gaps between the chunks: load them in order\r\n")
    assert conn.call("BF.LOADCHUNK", "l", 3, b"\0") == b"OK"
    assert conn.call("BF.LOADCHUNK", "l", 1000, b"\0") == b"OK"


def test_huge_claims_cost_nothing(start_server):
    server = start_server("--maxmemory", "100mb",
                          "--bf.bloom-memory-usage-limit", 2 ** 62)
    conn = server.conn()
    one = next(o for o in WHOLE if o["name"] == "default3")
    header = bytearray(recorded(one)[0][1])
    for size in (1 << 27, 1 << 33, 1 << 40, 1 << 59):
        struct.pack_into("<QQ", header, 20, size, size * 8)
        assert conn.raw("BF.LOADCHUNK", "k", 1, bytes(header)).startswith(
            b"-OOM"), size
    assert conn.call("DBSIZE") == 0
    conn.call("CONFIG", "SET", "bf.bloom-memory-usage-limit", 1 << 20)
    struct.pack_into("<QQ", header, 20, 1 << 24, 1 << 27)
    assert conn.raw("BF.LOADCHUNK", "k", 1, bytes(header)) == \
        b"-ERR operation exceeds bloom object memory limit\r\n"


# ---- restarts and replicas -----------------------------------------------------

@pytest.mark.parametrize("layout", ["native", "redisbloom", "valkeybloom"])
@pytest.mark.parametrize("save", [True, False], ids=["snapshot", "journal"])
def test_a_half_loaded_filter_survives_a_restart(group, layout, save):
    server = group.node("--bloom-layout", layout, "--appendonly",
                        "no" if save else "yes", "--appendfsync", "always")
    conn = server.conn()
    fill(conn, "k")
    pairs = chunks_of(conn, "k")
    load(conn, "l", pairs[:1] + pairs[2:])
    wanted = conn.call("BF.DEBUG", "l")
    assert b" missing:%d" % len(pairs[1][1]) in wanted[0]
    if save:
        assert conn.call("SAVE") == b"OK"
    conn.close()
    server.crash()
    server.restart()
    conn = server.conn()
    assert chunks_of(conn, "k") == pairs
    assert conn.call("BF.DEBUG", "l") == wanted
    assert conn.raw("BF.EXISTS", "l", "x").startswith(
        b"-ERR the filter is incomplete")
    load(conn, "l", pairs[1:2])
    assert chunks_of(conn, "l") == pairs
    assert conn.call("BF.MEXISTS", "l", "item:0", "item:2999") == [1, 1]


@pytest.mark.parametrize("layout", ["native", "redisbloom", "valkeybloom"])
def test_replicas_have_the_same_bytes(group, layout):
    """A filter that the replica gets by a full synchronization, and one that it
    gets in the stream; both go on growing there."""
    primary, replica = group.node("--bloom-layout", layout), group.node()
    conn = primary.conn()
    fill(conn, "k")
    pairs = chunks_of(conn, "k")
    load(conn, "half", pairs[:2])
    replicas.follow(replica, primary)
    load(conn, "half", pairs[2:])
    load(conn, "l", pairs)
    fill(conn, "m")
    assert conn.call("BF.RESERVE", "n", "0.01", 10, "NONSCALING") == b"OK"
    for key in ("half", "k", "l", "m"):
        conn.call("BF.MADD", key, *["more:%d" % i for i in range(9000)])
    assert conn.call("COPY", "k", "o") == 1
    assert conn.call("BF.RESET", "m") == b"OK"
    conn.call("BF.ADD", "m", "again")
    replicas.wait_even(primary, replica)
    assert replicas.digest(primary) == replicas.digest(replica)
    with replica.conn() as other:
        for key in ("half", "k", "l", "m", "n", "o"):
            assert chunks_of(other, key) == chunks_of(conn, key), key
            assert other.call("OBJECT", "ENCODING", key) == layout.encode()


def follow_slowly(replica, proxy):
    """Returns when the snapshot has begun, and no more of it comes."""
    proxy.hold_on = b"BLMYSNAP"
    replicas.follow(replica, proxy, wait=False)
    servers.wait_until(lambda: not proxy.flow.is_set(), 30)
    proxy.hold_on = None


@pytest.mark.parametrize("layout", ["native", "redisbloom", "valkeybloom"])
def test_chunks_come_while_the_filter_is_copied(group, layout):
    """A replica that does not read holds up the copying within the filter's
    lines: bytes before and behind that place come, and then items."""
    primary, replica = group.node("--bloom-layout", layout), group.node()
    proxy = group.proxy(primary)
    conn = primary.conn()
    seed = random.getrandbits(32)
    print("SEED=%d" % seed)
    rng = random.Random(seed)
    assert conn.call("BF.RESERVE", "k", "0.01", 60000000) == b"OK"
    header, *rest = chunks_of(conn, "k")
    assert conn.call("DEL", "k") == 1
    size = rest[-1][0] - 1
    step = 4 << 20
    pairs = [(end + 1, rng.randbytes(end - begin)) for begin, end in
             ((at, min(at + step, size - 64)) for at in range(0, size - 64, step))]
    pairs.append((size + 1, bytes(64)))
    load(conn, "k", [header] + pairs[::2])
    follow_slowly(replica, proxy)
    load(conn, "k", pairs[1::2])
    added = conn.call("BF.MADD", "k", *["more:%d" % i for i in range(1000)])
    assert 1 in added
    assert not replicas.link_is_up(replica)
    proxy.flow.set()
    replicas.wait_even(primary, replica)
    with replica.conn() as other:
        assert chunks_of(other, "k") == chunks_of(conn, "k")
        assert other.call("BF.INFO", "k") == conn.call("BF.INFO", "k")
