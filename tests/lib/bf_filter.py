# SPDX-License-Identifier: BSD-3-Clause
#
# A filter in the model of the BF commands (bf_model.py): how it grows, its size
# here, and the size that it would have in valkey-bloom.

import functools
import math

FIXED_SEED = bytes.fromhex(
    "590ff522ea7811daa714d8093b3e7bd91d898a733e988887307f97cd28073383")
DBL_MIN = 2.2250738585072014e-308
I64_MAX = 2 ** 63 - 1
LAYERS_MAX = 1024
LIMIT = 128 << 20

FULL = "ERR non scaling filter is full"
OVER_LIMIT = "ERR operation exceeds bloom object memory limit"
RATE_ZERO = "ERR false positive degrades to 0 on scale out"
MAX_LAYERS = "ERR bloom object reached max number of filters"
BAD_CAPACITY = "ERR bad capacity"


class Refused(Exception):
    """An error reply; its text is the whole line without the dash."""


# ---- sizes -------------------------------------------------------------------

def power(base, exponent):
    """Returns a power by square and multiply, the same double on every machine."""
    result = 1.0
    while exponent:
        if exponent & 1:
            result *= base
        exponent >>= 1
        base *= base
    return result


def module_layer_bytes(capacity, rate):
    """Returns the bytes of one filter in valkey-bloom, its structs included."""
    return 208 + math.ceil(
        capacity * math.log(rate) / (-8 * math.log(2) * math.log(2)))


def module_vector_bytes(count):
    """Returns the bytes of the object and the vector of its filters."""
    slots = 1 if count < 2 else 4
    while slots < count:
        slots *= 2
    return 48 + 8 * slots


CHOOSE = (1, -8, 28, -56, 70, -56, 28, -8, 1)


def stripe_rate(load):
    return sum(c * math.exp(-load * (1 - (63 / 64) ** i))
               for i, c in enumerate(CHOOSE))


@functools.lru_cache(None)
def shape(rate):
    """Returns (stripes, items per line) of our layers."""
    stripes = max(1, math.ceil(math.log(rate) / math.log(1e-3) - 1e-9))
    wanted = (0.95 * rate) ** (1 / stripes)
    low, high = 1e-3, 4096.0
    for _ in range(100):
        middle = (low + high) / 2
        if stripe_rate(middle) <= wanted:
            low = middle
        else:
            high = middle
    return stripes, low


@functools.lru_cache(1 << 16)
def own_lines(capacity, rate):
    """Returns (stripes, bytes) of one of our layers."""
    stripes, load = shape(rate)
    return stripes, stripes * 64 * math.ceil(capacity / load)


@functools.lru_cache(1 << 16)
def layer_error_rate(capacity, rate, items):
    """Returns the error rate of a layer: the items in a line follow a binomial
    distribution."""
    stripes, size = own_lines(capacity, rate)
    lines = size // 64 // stripes
    return max(0, sum(c * (1 - (1 - (63 / 64) ** i) / lines) ** items
                      for i, c in enumerate(CHOOSE))) ** stripes


def own_structs(odd, count, slot=40):
    slots = 2
    while slots < count:
        slots *= 2
    return 72 + odd + (24 + slot * slots if count > 1 else 0)


def fits(own, module, limit):
    return (module if own <= 1.25 * module else own) <= limit


class Filter:
    """layers: [capacity, items]; claimed: the items that must be found. The
    subclasses have the layouts of the two modules."""

    layout = "native"

    def __init__(self, capacity, rate, tightening, expansion, seed):
        self.rate, self.tightening = rate, tightening
        self.expansion, self.seed = expansion, seed
        self.first = capacity
        self.clear()

    def clear(self):
        self.layers, self.claimed = [], set()
        self.module = self.lines = 0

    def copy(self):
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.layers = [list(layer) for layer in self.layers]
        twin.claimed = set(self.claimed)
        return twin

    def odd(self):
        return self.tightening != 0.5 or (
            isinstance(self.seed, bytes) and self.seed != FIXED_SEED)

    def structs(self, count):
        return own_structs(40 * self.odd(), count)

    @staticmethod
    def shape(capacity, rate):
        """Returns (hashes, stored bytes, bytes in memory)."""
        stripes, size = own_lines(capacity, rate)
        return stripes * 8, size, size

    @staticmethod
    def layer_false(capacity, rate, items):
        return layer_error_rate(capacity, rate, items)

    def fits(self, own, module, limit):
        return fits(own, module, limit)

    def layer_rate(self, index):
        return self.rate * power(self.tightening, index)

    def error_rate(self):
        """Returns the probability of a false positive."""
        return min(1, sum(self.layer_false(capacity, self.layer_rate(i), items)
                          for i, (capacity, items) in enumerate(self.layers)))

    def size(self):
        return self.structs(len(self.layers)) + self.lines

    def items(self):
        return sum(layer[1] for layer in self.layers)

    def capacity(self):
        return sum(layer[0] for layer in self.layers)

    def grow(self, limit, foretold=False):
        """Appends a layer. Raises Refused and changes nothing."""
        n = len(self.layers)
        capacity, rate = self.first, self.rate
        if n == 0 and foretold and rate <= DBL_MIN:
            raise Refused(RATE_ZERO)
        if n > 0:
            if self.expansion == 0:
                raise Refused(FULL)
            if n >= LAYERS_MAX:
                raise Refused(MAX_LAYERS)
            rate = self.layer_rate(n)
            if rate <= DBL_MIN:
                raise Refused(RATE_ZERO)
            capacity = self.layers[-1][0] * self.expansion
            if capacity > I64_MAX:
                raise Refused(BAD_CAPACITY)
        module = self.module + module_layer_bytes(capacity, rate)
        lines = self.lines + self.shape(capacity, rate)[2]
        own = self.structs(n + 1) + lines
        if not self.fits(own, module_vector_bytes(n + foretold) + module,
                         limit):
            raise Refused(OVER_LIMIT)
        self.layers.append([capacity, 0])
        self.module, self.lines = module, lines

    def stored_fits(self, limit):
        return self.fits(self.size(), self.module + module_vector_bytes(
            len(self.layers) - 1), limit)

    def project(self, limit, target=None):
        """Returns the capacity that the filter can grow to, up to the target;
        raises Refused if a limit stops it before the target."""
        probe = type(self)(self.first, self.rate, self.tightening,
                           self.expansion, self.seed)
        total = 0
        while target is None or total < target:
            try:
                probe.grow(limit, True)
            except Refused as why:
                if target is None and str(why) != BAD_CAPACITY:
                    return total
                raise
            total += probe.layers[-1][0]
            if probe.layers[-1][0] * self.expansion > I64_MAX:
                raise Refused(BAD_CAPACITY)
        return total


# ---- the layouts of the modules ------------------------------------------------

@functools.lru_cache(1 << 16)
def strides(bits, hashes):
    """Returns {n: share} of the items that have n different positions. The
    positions are a + i * b modulo `bits`: in a small layer many strides b meet
    their own positions again (1 in 64 has one position in a layer of 64 bits)."""
    shares = {hashes: 1.0}
    for period in range(1, hashes):
        if bits % period == 0:
            # phi(period) of the strides have this period.
            shares[period] = sum(
                math.gcd(i, period) == 1 for i in range(1, period + 1)) / bits
            shares[hashes] -= shares[period]
    return shares


@functools.lru_cache(1 << 16)
def classic_false(bits, hashes, items):
    """Returns the rate of a Bloom filter with double hashing: expected set bits,
    all positions hit."""
    shares = strides(bits, hashes)
    kept = sum(share * (1 - n / bits) for n, share in shares.items() if n < bits)
    filled = 1 - kept ** items
    return sum(share * filled ** n for n, share in shares.items())


def in_lines(size):
    return math.ceil(size / 64) * 64


class RedisFilter(Filter):
    """RedisBloom's: reference formulas of its sizes, and its halved rates."""

    layout = "redisbloom"

    def odd(self):
        return True

    def structs(self, count):
        return own_structs(80, count, 56)

    @staticmethod
    def shape(capacity, rate):
        per_item = abs(math.log(rate) / 0.480453013918201)
        bits = max(1, math.trunc(capacity * per_item))
        size = math.ceil(bits / 64) * 8
        return math.ceil(0.693147180559945 * per_item), size, in_lines(size)

    @staticmethod
    def layer_false(capacity, rate, items):
        hashes, size, _ = RedisFilter.shape(capacity, rate)
        return classic_false(size * 8, hashes, items)

    def fits(self, own, module, limit):
        return own <= limit


class ValkeyFilter(Filter):
    """valkey-bloom's."""

    layout = "valkeybloom"

    def structs(self, count):
        return own_structs(80, count)

    @staticmethod
    def shape(capacity, rate):
        size = module_layer_bytes(capacity, rate) - 208
        return max(1, math.floor(size * 8 / capacity * math.log(2) + 0.5)), \
            size, in_lines(size)

    @staticmethod
    def layer_false(capacity, rate, items):
        hashes, size, _ = ValkeyFilter.shape(capacity, rate)
        return classic_false(size * 8, hashes, items)


LAYOUTS = {kind.layout: kind for kind in (Filter, RedisFilter, ValkeyFilter)}
