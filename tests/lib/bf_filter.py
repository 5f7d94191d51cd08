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


def own_structs(odd, count):
    slots = 2
    while slots < count:
        slots *= 2
    return 72 + 40 * odd + (24 + 40 * slots if count > 1 else 0)


def fits(own, module, limit):
    return (module if own <= 1.25 * module else own) <= limit


class Filter:
    """layers: [capacity, items]; claimed: the items that must be found."""

    def __init__(self, capacity, rate, tightening, expansion, seed):
        self.rate, self.tightening = rate, tightening
        self.expansion, self.seed = expansion, seed
        self.first = capacity
        self.clear()

    def clear(self):
        self.layers, self.claimed = [], set()
        self.module = self.lines = 0

    def copy(self):
        twin = Filter.__new__(Filter)
        twin.__dict__.update(self.__dict__)
        twin.layers = [list(layer) for layer in self.layers]
        twin.claimed = set(self.claimed)
        return twin

    def odd(self):
        return self.tightening != 0.5 or (
            isinstance(self.seed, bytes) and self.seed != FIXED_SEED)

    def layer_rate(self, index):
        return self.rate * power(self.tightening, index)

    def error_rate(self):
        """Returns the probability of a false positive."""
        return min(1, sum(layer_error_rate(capacity, self.layer_rate(i), items)
                          for i, (capacity, items) in enumerate(self.layers)))

    def size(self):
        return own_structs(self.odd(), len(self.layers)) + self.lines

    def items(self):
        return sum(layer[1] for layer in self.layers)

    def capacity(self):
        return sum(layer[0] for layer in self.layers)

    def grow(self, limit, foretold=False):
        """Appends a layer. Raises Refused and changes nothing."""
        n = len(self.layers)
        capacity, rate = self.first, self.rate
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
        lines = self.lines + own_lines(capacity, rate)[1]
        own = own_structs(self.odd(), n + 1) + lines
        if not fits(own, module_vector_bytes(n + foretold) + module, limit):
            raise Refused(OVER_LIMIT)
        self.layers.append([capacity, 0])
        self.module, self.lines = module, lines

    def stored_fits(self, limit):
        return fits(self.size(), self.module +
                    module_vector_bytes(len(self.layers) - 1), limit)

    def project(self, limit, target=None):
        """Returns the capacity that the filter can grow to, up to the target;
        raises Refused if a limit stops it before the target."""
        probe = Filter(self.first, self.rate, self.tightening, self.expansion,
                       self.seed)
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
