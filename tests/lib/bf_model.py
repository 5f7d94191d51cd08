# SPDX-License-Identifier: BSD-3-Clause
#
# An independent model of the replies of the BF commands. It follows the
# documented behaviour of valkey-bloom 1.0.1 and RedisBloom 8, and our own layout
# for sizes, but no code in src/. The model gets a command and the server's reply,
# and says what the reply must be, byte for byte.
#
# A filter may be wrong about an item that was never added. Then the model accepts
# the server's reply and counts it in `false_positives`. An item that was once
# added or reported as present must stay present. Tests compare the count with
# `expected` to find a filter with too many false positives.

import functools
import math
import re

from lib import resp
from lib.bf_filter import (BAD_CAPACITY, FIXED_SEED, FULL, I64_MAX, LAYOUTS,
                           LIMIT, OVER_LIMIT, RATE_ZERO, Refused)
from lib.bf_numbers import (double_text, redis_float, redis_integer,
                            rust_float, rust_integer)

NOT_FOUND = "ERR not found"


# ---- replies -----------------------------------------------------------------

def integer(value):
    return b":%d\r\n" % value


def simple(text):
    return b"+%s\r\n" % text.encode()


def bulk(text):
    data = resp.as_bytes(text)
    return b"$%d\r\n%s\r\n" % (len(data), data)


def array(parts):
    return b"*%d\r\n" % len(parts) + b"".join(parts)


def error(text):
    return b"-%s\r\n" % text.encode()


OK = simple("OK")


class Model:
    """Models the server's filters in one dialect; `dialect` may be changed."""

    def __init__(self, dialect="valkey", layout="native"):
        self.dialect, self.layout = dialect, layout
        self.filters = {}
        self.capacity, self.rate = 100, 0.01
        self.expansion, self.tightening = 2, 0.5
        self.limit, self.random_seed = LIMIT, True
        self.false_positives = 0
        self.expected = 0.0   # of them
        self.unsettled = None   # a key whose items only the server knows
        self.proto = 2
        self.seen = b""
        self.lines = []

    def answer(self, reply, proto, words):
        """Returns the reply that `words` must get; `reply` is the one that they
        got."""
        self.proto = proto
        self.seen = reply
        self.lines = reply.split(b"\r\n")
        self.unsettled = None
        name = words[0].upper()
        try:
            return self.commands()[name](self, words)
        except Refused as why:
            return error(str(why))

    def is_redis(self):
        return self.dialect == "redis"

    def arity(self, words):
        name = words[0].upper().decode()
        if self.is_redis():
            name = name.lower()
        raise Refused("ERR wrong number of arguments for '%s' command" % name)

    def need(self, words, least, most=None):
        if len(words) < least or (most is not None and len(words) > most):
            self.arity(words)

    def yes(self, value):
        if self.is_redis() and self.proto == 3:
            return b"#t\r\n" if value else b"#f\r\n"
        return integer(value)

    def said(self, index, count):
        """Returns the server's answer for item `index` of `count`: b":1" and
        the like, or an error. `count` is None for a reply that is no array."""
        if count is None:
            return self.seen[:2]
        if len(self.lines) <= index + 1:
            return b""
        return self.lines[index + 1][:2]

    # ---- items

    def add(self, filter_, item, said):
        """Returns 1 or 0; raises Refused if the item cannot be added. The
        server may have reported a false positive."""
        if item in filter_.claimed:
            return 0
        self.expected += filter_.error_rate()
        if said in (b":0", b"#f"):
            self.false_positives += 1
            filter_.claimed.add(item)
            return 0
        capacity, items = filter_.layers[-1]
        if items >= capacity:
            try:
                filter_.grow(self.limit)
            except Refused as why:
                text = str(why)
                if self.is_redis() and text not in (FULL, OVER_LIMIT):
                    text = "ERR problem inserting into filter"
                raise Refused(text) from None
        filter_.layers[-1][1] += 1
        filter_.claimed.add(item)
        return 1

    def add_all(self, filter_, items):
        out = []
        for index, item in enumerate(items):
            try:
                out.append(self.yes(self.add(
                    filter_, item, self.said(index, len(items)))))
            except Refused as why:
                out.append(error(str(why)))
                break
        return array(out)

    def has(self, filter_, item, said):
        if filter_ is None:
            return 0
        if item in filter_.claimed:
            return 1
        self.expected += filter_.error_rate()
        if said not in (b":1", b"#t"):
            return 0
        self.false_positives += 1
        filter_.claimed.add(item)
        return 1

    # ---- creation

    def defaults(self):
        rate = min(self.rate, 0.25) if self.is_redis() else self.rate
        seed = object() if self.random_seed else FIXED_SEED
        tightening = self.tightening
        if self.layout == "redisbloom":
            seed, tightening = None, 0.5
        return {"capacity": self.capacity, "rate": rate,
                "tightening": tightening, "expansion": self.expansion,
                "seed": seed}

    def halves(self, props):
        """Tells whether the first layer gets half of the rate."""
        return props["expansion"] > 0 and (
            self.is_redis() or self.layout == "redisbloom")

    def check_layout(self, props):
        if self.layout == "redisbloom":
            for ok, what in ((props["seed"] is None, "seed"),
                             (props["tightening"] == 0.5,
                              "tightening ratio but 0.5")):
                if not ok:
                    raise Refused("ERR filters of layout redisbloom have no %s "
                                  "(bloom-layout)" % what)

    def create(self, key, props):
        rate = props["rate"]
        self.check_layout(props)
        if self.halves(props):
            rate *= 0.5
            if rate == 0:
                raise Refused("ERR could not create filter"
                              if self.is_redis() else "ERROR")
        made = LAYOUTS[self.layout](props["capacity"], rate,
                                    props["tightening"], props["expansion"],
                                    props["seed"])
        made.grow(self.limit)
        self.filters[key] = made
        return made

    def open(self, key):
        return self.filters.get(key) or self.create(key, self.defaults())

    # ---- commands

    def bf_add(self, words):
        self.need(words, 3, 3)
        return self.yes(self.add(self.open(words[1]), words[2],
                                 self.said(0, None)))

    def bf_madd(self, words):
        self.need(words, 3)
        return self.add_all(self.open(words[1]), words[2:])

    def bf_exists(self, words):
        self.need(words, 3, 3)
        return self.yes(self.has(self.filters.get(words[1]), words[2],
                                 self.said(0, None)))

    def bf_mexists(self, words):
        self.need(words, 3)
        items = words[2:]
        filter_ = self.filters.get(words[1])
        return array([self.yes(self.has(filter_, item,
                                        self.said(i, len(items))))
                      for i, item in enumerate(items)])

    def bf_card(self, words):
        self.need(words, 2, 2)
        filter_ = self.filters.get(words[1])
        return integer(filter_.items() if filter_ else 0)

    def bf_countnew(self, words):
        """Counts new items; false positives lower the count."""
        self.need(words, 3)
        filter_ = self.filters.get(words[1])
        claimed = filter_.claimed if filter_ else ()
        fresh = {item for item in words[2:] if item not in claimed}
        count = len(fresh)
        if filter_ and re.fullmatch(rb":\d+\r\n", self.seen):
            said = int(self.seen[1:-2])
            self.expected += count * filter_.error_rate()
            if said < count:
                self.false_positives += count - said
                count = said
        return integer(count)

    def bf_reserve(self, words):
        self.need(words, 4, 7 if self.is_redis() else 6)
        props = self.defaults()
        if self.is_redis():
            self.redis_reserve(words, props)
        else:
            self.valkey_reserve(words, props)
        if words[1] in self.filters:
            raise Refused("ERR item exists")
        self.create(words[1], props)
        return OK

    def bf_insert(self, words):
        self.need(words, 4 if self.is_redis() else 2)
        props = self.defaults()
        if self.is_redis():
            nocreate, items = self.redis_insert(words, props)
        else:
            nocreate, items = self.valkey_insert(words, props)
        filter_ = self.filters.get(words[1])
        if filter_ is None:
            if nocreate:
                raise Refused(NOT_FOUND)
            filter_ = self.create(words[1], props)
        return self.add_all(filter_, items)

    # ---- valkey-bloom's grammar

    @staticmethod
    def valkey_rate(text, bad, out_of_range):
        value = rust_float(text)
        if value is None:
            raise Refused(bad)
        if not 0 < value < 1:
            raise Refused(out_of_range)
        return value

    def valkey_error(self, text):
        return self.valkey_rate(text, "ERR bad error rate",
                                "ERR (0 < error rate range < 1)")

    @staticmethod
    def valkey_capacity(text):
        value = rust_integer(text, b"-", 0, I64_MAX)
        if value is None:
            raise Refused(BAD_CAPACITY)
        if value == 0:
            raise Refused("ERR (capacity should be larger than 0)")
        return value

    @staticmethod
    def valkey_expansion(text):
        value = rust_integer(text, b"", 1, 2 ** 32 - 1)
        if value is None:
            raise Refused("ERR bad expansion")
        return value

    def valkey_reserve(self, words, props):
        props["rate"] = self.valkey_error(words[2])
        props["capacity"] = self.valkey_capacity(words[3])
        tail = [word.upper() for word in words[4:]]
        if len(tail) == 1 and tail[0] == b"NONSCALING":
            props["expansion"] = 0
        elif len(tail) == 2 and tail[0] == b"EXPANSION":
            props["expansion"] = self.valkey_expansion(words[5])
        elif tail:
            raise Refused("ERROR")

    def valkey_insert(self, words, props):
        rest = list(words[2:])
        nocreate, target = False, None
        items = []
        while rest:
            word = rest.pop(0).upper()
            if word == b"NONSCALING":
                props["expansion"] = 0
            elif word == b"NOCREATE":
                nocreate = True
            elif word == b"ITEMS":
                if not rest:
                    self.arity(words)
                items, rest = rest, []
            elif word not in (b"ERROR", b"CAPACITY", b"EXPANSION", b"SEED",
                              b"TIGHTENING", b"VALIDATESCALETO"):
                raise Refused("ERR unknown argument received")
            elif not rest:
                self.arity(words)
            elif word == b"VALIDATESCALETO":
                target = self.valkey_capacity(rest.pop(0))
            else:
                self.valkey_option(word, rest.pop(0), props)
        if target is not None:
            self.validate(props, target)
        return nocreate, items

    def valkey_option(self, word, value, props):
        if word == b"ERROR":
            props["rate"] = self.valkey_error(value)
        elif word == b"CAPACITY":
            props["capacity"] = self.valkey_capacity(value)
        elif word == b"EXPANSION":
            props["expansion"] = self.valkey_expansion(value)
        elif word == b"TIGHTENING":
            props["tightening"] = self.valkey_rate(
                value, "ERR bad tightening ratio",
                "ERR (0 < tightening ratio range < 1)")
        elif len(value) != 32:
            raise Refused("ERR invalid seed")
        else:
            props["seed"] = value

    def validate(self, props, target):
        if props["expansion"] == 0:
            raise Refused("ERR cannot use NONSCALING and VALIDATESCALETO "
                          "options together")
        self.check_layout(props)
        rate = props["rate"] * (0.5 if self.halves(props) else 1)
        if self.layout == "redisbloom" and rate == 0:
            raise Refused("ERR provided VALIDATESCALETO causes bloom object "
                          "to exceed memory limit")
        try:
            LAYOUTS[self.layout](**{**props, "rate": rate}).project(
                self.limit, target)
        except Refused as why:
            raise Refused({
                OVER_LIMIT: "ERR provided VALIDATESCALETO causes bloom object "
                            "to exceed memory limit",
                RATE_ZERO: "ERR provided VALIDATESCALETO causes false "
                           "positive to degrade to 0",
            }.get(str(why), str(why))) from None

    # ---- RedisBloom's grammar

    def redis_reserve(self, words, props):
        rate = redis_float(words[2])
        if rate is None:
            raise Refused("ERR bad error rate")
        if not 0 < rate < 1:
            raise Refused("ERR error rate must be in the range "
                          "(0.000000, 1.000000)")
        props["rate"] = min(rate, 0.25)
        capacity = redis_integer(words[3])
        if capacity is None:
            raise Refused(BAD_CAPACITY)
        if not 1 <= capacity <= 1 << 30:
            raise Refused("ERR capacity must be in the range [1, 1073741824]")
        props["capacity"] = capacity
        tail = [word.upper() for word in words[4:]]
        never = props["expansion"] == 0 or b"NONSCALING" in tail
        if b"EXPANSION" in tail:
            at = 4 + tail.index(b"EXPANSION") + 1
            if at == len(words):
                raise Refused("ERR no expansion")
            value = redis_integer(words[at])
            if value is None:
                raise Refused("ERR bad expansion")
            if value != 0 and never:
                raise Refused("Nonscaling filters cannot expand")
            if not 0 <= value <= 32768:
                raise Refused("ERR expansion must be in the range [0, 32768]")
            props["expansion"] = value
        if never:
            props["expansion"] = 0

    def redis_insert(self, words, props):
        rest = list(words[2:])
        nocreate, never, items = False, props["expansion"] == 0, None
        while rest and items is None:
            word = rest.pop(0).lower()
            if word[:1] == b"i":
                items, rest = rest, []
            elif word[:1] == b"n":
                nocreate = nocreate or word[2:3] == b"c"
                never = never or word[2:3] != b"c"
            elif word[:1] not in (b"e", b"c"):
                raise Refused("Unknown argument received")
            elif not rest:
                self.arity(words)
            else:
                self.redis_option(word, rest.pop(0), props)
        if not items:
            self.arity(words)
        if never:
            props["expansion"] = 0
        return nocreate, items

    @staticmethod
    def redis_option(word, text, props):
        if word[:1] == b"c":
            value = redis_integer(text)
            if value is None or not 1 <= value <= 1 << 30:
                raise Refused("Bad capacity")
            props["capacity"] = value
        elif word[1:2] == b"r":
            value = redis_float(text)
            if value is None or not 0 < value < 1:
                raise Refused("Bad error rate")
            props["rate"] = min(value, 0.25)
        else:
            value = redis_integer(text)
            if value is None or not 0 <= value <= 32768:
                raise Refused("Bad expansion")
            props["expansion"] = value

    # ---- what there is to see

    def null(self):
        return b"_\r\n" if self.proto == 3 else b"$-1\r\n"

    def double(self, value):
        if self.proto == 3:
            return b",%s\r\n" % double_text(value).encode()
        return bulk(double_text(value))

    def fields(self, filter_):
        """Returns [(word, label, function that returns the value)], in order."""
        out = [
            ("CAPACITY", "Capacity", lambda: integer(filter_.capacity())),
            ("SIZE", "Size", lambda: integer(filter_.size())),
            ("FILTERS", "Number of filters",
             lambda: integer(len(filter_.layers))),
            ("ITEMS", "Number of items inserted",
             lambda: integer(filter_.items())),
            ("ERROR", "Error rate", lambda: self.double(filter_.rate)),
            ("EXPANSION", "Expansion rate",
             lambda: integer(filter_.expansion) if filter_.expansion
             else self.null()),
        ]
        if self.is_redis():
            del out[4]
        elif filter_.expansion:
            out += [
                ("TIGHTENING", "Tightening ratio",
                 lambda: self.double(filter_.tightening)),
                ("MAXSCALEDCAPACITY", "Max scaled capacity",
                 lambda: integer(filter_.project(self.limit))),
            ]
        return out

    def bf_info(self, words):
        self.need(words, 2, 3)
        filter_ = self.filters.get(words[1])
        if filter_ is None:
            raise Refused(NOT_FOUND)
        fields = self.fields(filter_)
        whole = len(words) == 2
        if not whole:
            fields = [f for f in fields if f[0].encode() == words[2].upper()]
            if not fields:
                raise Refused("Invalid information value" if self.is_redis()
                              else "ERR invalid information value")
        pairs = [(simple(label), value()) for _, label, value in fields]
        flat = [part for pair in pairs for part in pair]
        if self.is_redis() and self.proto == 3:
            return b"%%%d\r\n" % len(pairs) + b"".join(flat)
        if whole:
            return array(flat)
        return array([pairs[0][1]]) if self.is_redis() else pairs[0][1]

    def bf_debug(self, words):
        self.need(words, 2, 2)
        filter_ = self.filters.get(words[1])
        if filter_ is None:
            raise Refused(NOT_FOUND)
        out = [bulk("size:%d layout:%s" % (filter_.items(), filter_.layout))]
        for i, (capacity, items) in enumerate(filter_.layers):
            rate = filter_.layer_rate(i)
            hashes, size, _ = filter_.shape(capacity, rate)
            out.append(bulk(
                "bytes:%d bits:%d hashes:%d hashwidth:64 capacity:%d size:%d "
                "ratio:%g" % (size, size * 8, hashes, capacity, items, rate)))
        return array(out)

    # ---- ours, and keys

    def bf_reset(self, words):
        self.need(words, 2, 2)
        filter_ = self.filters.get(words[1])
        if filter_ is None:
            raise Refused(NOT_FOUND)
        filter_.clear()
        filter_.grow(math.inf)
        return OK

    def bf_merge(self, words):
        """Models BF.MERGE with one source only."""
        self.need(words, 3, 3)
        into, source = (self.filters.get(word) for word in words[1:])
        if source is None:
            raise Refused(NOT_FOUND)
        if into is None:
            if not source.stored_fits(self.limit):
                raise Refused(OVER_LIMIT)
            self.filters[words[1]] = source.copy()
        elif into is not source:
            self.unite(words[1], into, source)
        return OK

    def unite(self, key, into, source):
        if into.layout != source.layout:
            raise Refused("ERR cannot merge filters of different layouts")
        for what, name in (("seed", "seeds"), ("first", "capacities"),
                           ("rate", "error rates"),
                           ("tightening", "tightening ratios"),
                           ("expansion", "expansions")):
            if getattr(into, what) != getattr(source, what):
                raise Refused("ERR cannot merge filters of different " + name)
        shapes = "ERR cannot merge filters of different layer shapes"
        if into.layout == "redisbloom" and into.expansion == 0 and \
                self.seen == error(shapes):
            raise Refused(shapes)   # NONSCALING and EXPANSION 0 differ
        if into.layout != "native":
            raise Refused("ERR cannot merge filters of layout " + into.layout)
        if self.seen.startswith(b"-ERR cannot merge: the union would hold"):
            full = [layer[0] for layer in max(
                into.layers, source.layers, key=len)]
            most = [sum(f.layers[i][1] for f in (into, source)
                        if i < len(f.layers)) for i in range(len(full))]
            if any(m > f for m, f in zip(most, full)):
                raise Refused(self.seen[1:-2].decode())
        if len(into.layers) < len(source.layers):
            if not source.stored_fits(self.limit):
                raise Refused(OVER_LIMIT)
            into.module, into.lines = source.module, source.lines
        longest = max(into.layers, source.layers, key=len)
        into.layers = [list(layer) for layer in longest]
        into.claimed |= source.claimed
        self.unsettled = key

    def settle(self, key, items):
        """Stores the items of each layer of a union, as the server counts them."""
        filter_ = self.filters[key]
        assert len(items) == len(filter_.layers), key
        for layer, count in zip(filter_.layers, items):
            assert layer[1] <= count <= layer[0], (key, items)
            layer[1] = count

    def copy(self, words):
        self.need(words, 3, 4)
        if words[1] == words[2]:
            raise Refused("ERR source and destination objects are the same")
        source = self.filters.get(words[1])
        if source is None or (words[2] in self.filters and len(words) == 3):
            return integer(0)
        self.filters[words[2]] = source.copy()
        return integer(1)

    def delete(self, words):
        return integer(self.filters.pop(words[1], None) is not None)

    def config(self, words):
        """Valid values only."""
        self.set_option(words[2], words[3])
        return OK

    def set_option(self, name, text):
        value = text.decode()
        if name in (b"bf.bloom-capacity", b"bf-initial-size"):
            self.capacity = int(value)
        elif name in (b"bf.bloom-expansion", b"bf-expansion-factor"):
            self.expansion = int(value)
        elif name == b"bf.bloom-fp-rate":
            self.rate = float(value)
        elif name == b"bf-error-rate":
            self.rate = min(float(value), 0.25)
        elif name == b"bf.bloom-tightening-ratio":
            self.tightening = float(value)
        elif name == b"bf.bloom-memory-usage-limit":
            self.limit = int(value)
        elif name == b"bf.bloom-use-random-seed":
            self.random_seed = value == "yes"
        elif name == b"bloom-layout":
            self.layout = value
        else:
            raise ValueError(name)

    @staticmethod
    @functools.lru_cache(None)
    def commands():
        return {
            b"BF.ADD": Model.bf_add, b"BF.MADD": Model.bf_madd,
            b"BF.EXISTS": Model.bf_exists, b"BF.MEXISTS": Model.bf_mexists,
            b"BF.CARD": Model.bf_card, b"BF.INFO": Model.bf_info,
            b"BF.RESERVE": Model.bf_reserve, b"BF.INSERT": Model.bf_insert,
            b"BF.DEBUG": Model.bf_debug, b"BF.COUNTNEW": Model.bf_countnew,
            b"BF.RESET": Model.bf_reset, b"BF.MERGE": Model.bf_merge,
            b"COPY": Model.copy, b"DEL": Model.delete,
            b"CONFIG": Model.config,
        }
