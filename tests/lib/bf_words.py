# SPDX-License-Identifier: BSD-3-Clause
#
# Random BF commands, valid and invalid, in the grammar of one dialect or of
# neither. There are few keys, few items and small capacities, so that filters
# fill and grow.

from lib.bf_filter import FIXED_SEED

KEYS = [b"k%d" % i for i in range(6)] + [b"", b"NONSCALING"]
ITEMS = [b"i%d" % i for i in range(90)] + [
    b"", b"\x00", b"\r\n", b"ITEMS", b"EXPANSION", b"a" * 300,
    bytes(range(256))]

RATES = [b"0.01", b"0.001", b"1e-3", b"0.05", b".5", b"0.25", b"0.3", b"0.9",
         b"0.999", b"1e-9", b"0.0001234", b"1.25e-5", b"1e-100", b"1e-300",
         b"3e-308", b"1e-310", b"1e-323", b"5e-324"]
BAD_RATES = [b"0", b"1", b"-0.1", b"1.5", b"nan", b"inf", b"-inf", b"infinity",
             b"NaN", b"abc", b"", b" 0.1", b"0.1 ", b"0.1x", b"+0.5", b"5.",
             b"1e-400", b"1e400", b"0x0.1p0", b"0x1p-2", b"0x", b"-0", b"0e0",
             b"1e", b"0.99999999999999999", b"0.1\x00", b"1_0", b"\xff"]
CAPACITIES = [b"1", b"2", b"3", b"5", b"7", b"10", b"20", b"40", b"100",
              b"1000", b"30000", b"700000", b"12000000"]
BAD_CAPACITIES = [b"0", b"-1", b"-0", b"+5", b"05", b"1.5", b"1e3", b"", b" 5",
                  b"5 ", b"abc", b"1073741824", b"1073741825",
                  b"9223372036854775807", b"9223372036854775808",
                  b"-9223372036854775808", b"0x10", b"+", b"1_0", b"\xff",
                  b"00"]
EXPANSIONS = [b"1", b"2", b"3", b"4", b"10", b"32768"]
BAD_EXPANSIONS = [b"0", b"-1", b"-0", b"+2", b"02", b"1.5", b"", b"abc",
                  b"32769", b"4294967295", b"4294967296",
                  b"18446744073709551616", b"NONSCALING", b"EXPANSION", b"+"]
TIGHTENINGS = [b"0.5", b"0.5", b"0.9", b"0.1", b"0.75", b"1e-100", b"0", b"1",
               b"x", b"nan", b"", b"0.999999"]
TARGETS = [b"1", b"100", b"5000", b"1000000", b"26214300", b"26214301",
           b"999999999999", b"9223372036854775807"] + BAD_CAPACITIES
SEEDS = [FIXED_SEED, b"0123456789abcdef0123456789abcdef", b"s" * 32, b"s" * 31,
         b"s" * 33, b""]
FIELDS = [b"CAPACITY", b"SIZE", b"FILTERS", b"ITEMS", b"EXPANSION", b"ERROR",
          b"TIGHTENING", b"MAXSCALEDCAPACITY", b"junk", b"", b"SIZE "]
LIMITS = [b"0", b"383", b"384", b"900", b"2000", b"20000", b"200000",
          b"16777216", b"16777216", b"16777216"]


class Words:
    """Makes commands with the random numbers of `rng`."""

    def __init__(self, rng, dialect, layouts=()):
        self.rng, self.dialect, self.layouts = rng, dialect, layouts

    def one(self, good, bad=(), odds=12):
        """Returns a word that is mostly valid."""
        if bad and self.rng.randrange(odds) == 0:
            return self.rng.choice(bad)
        return self.rng.choice(good)

    def case(self, word):
        return self.rng.choice([word, word, word.lower(), word.title()])

    def items(self, most=12):
        return [self.rng.choice(ITEMS)
                for _ in range(self.rng.randrange(1, most))]

    def reserve(self):
        words = [b"BF.RESERVE", self.rng.choice(KEYS),
                 self.one(RATES, BAD_RATES),
                 self.one(CAPACITIES, BAD_CAPACITIES)]
        for _ in range(self.rng.choice([0, 0, 1, 1, 2])):
            words += self.rng.choice([
                [self.case(b"NONSCALING")],
                [self.case(b"EXPANSION"),
                 self.one(EXPANSIONS, BAD_EXPANSIONS, 5)]] * 4 +
                [[self.case(b"EXPANSION")], [b"junk"]])
        return words

    def insert_option(self):
        case, one = self.case, self.one
        option = self.rng.randrange(10)
        if option < 2:
            return [case(b"CAPACITY"), one(CAPACITIES, BAD_CAPACITIES)]
        if option < 4:
            return [case(b"ERROR"), one(RATES, BAD_RATES)]
        if option < 6:
            return [case(b"EXPANSION"), one(EXPANSIONS, BAD_EXPANSIONS)]
        if option < 8:
            return [case(self.rng.choice([b"NONSCALING", b"NOCREATE"]))]
        if self.dialect == "redis" or self.rng.randrange(30) == 0:
            return self.rng.choice([
                [b"junk"], [b""], [b"NX"], [b"CAP", b"9"], [b"er", b"0.1"],
                [b"e", b"3"], [b"no"], [b"i"], [b"ITEM"], [b"nic"],
                [b"CAPACITY"], [b"SEED", b"s" * 32]])
        return self.rng.choice([
            [case(b"SEED"), one(SEEDS)], [case(b"TIGHTENING"),
                                          one(TIGHTENINGS)],
            [case(b"VALIDATESCALETO"), one(TARGETS)]])

    def insert(self):
        words = [b"BF.INSERT", self.rng.choice(KEYS)]
        for _ in range(self.rng.choice([0, 0, 1, 2, 3])):
            words += self.insert_option()
        if self.rng.randrange(8):
            words += [self.case(b"ITEMS")] + self.items()
        return words

    def option(self):
        """A valid option. Filters of several layouts meet in some runs."""
        redis = self.dialect == "redis"
        if self.layouts and self.rng.randrange(8) == 0:
            return [b"CONFIG", b"SET", b"bloom-layout",
                    self.rng.choice(self.layouts)]
        name, values = self.rng.choice([
            (b"bf-initial-size" if redis else b"bf.bloom-capacity",
             [b"100", b"10", b"3"]),
            (b"bf-expansion-factor" if redis else b"bf.bloom-expansion",
             [b"2", b"2", b"1", b"0"]),
            (b"bf-error-rate" if redis else b"bf.bloom-fp-rate",
             [b"0.01", b"0.01", b"0.2", b"0.7"]),
            (b"bf.bloom-fp-rate", [b"0.01", b"0.4"]),
            (b"bf.bloom-tightening-ratio", [b"0.5", b"0.5", b"0.25"]),
            (b"bf.bloom-memory-usage-limit", LIMITS),
            (b"bf.bloom-use-random-seed", [b"yes", b"no"])])
        return [b"CONFIG", b"SET", name, self.rng.choice(values)]

    def spoil(self, words):
        """Removes, adds or changes one word."""
        at = self.rng.randrange(1, len(words) + 1)
        how = self.rng.randrange(3)
        junk = self.rng.choice([b"", b"junk", b"1", b"NONSCALING", b"ITEMS",
                                b"EXPANSION", b"\xff\xfe"])
        if how == 0:
            return words[:at] + words[at + 1:]
        return words[:at] + [junk] + words[at + (how == 1):]

    def command(self):
        """[name, word, ...]"""
        rng, key = self.rng, self.rng.choice(KEYS)
        dice = rng.randrange(1000)
        if dice < 170:
            words = [b"BF.MADD", key] + self.items(20)
        elif dice < 290:
            words = [b"BF.ADD", key, rng.choice(ITEMS)]
        elif dice < 360:
            words = [b"BF.EXISTS", key, rng.choice(ITEMS)]
        elif dice < 430:
            words = [b"BF.MEXISTS", key] + self.items()
        elif dice < 590:
            words = self.insert()
        elif dice < 720:
            words = self.reserve()
        elif dice < 790:
            words = [b"BF.INFO", key] + (
                [self.case(rng.choice(FIELDS))] if rng.randrange(3) else [])
        else:
            return self.rarer(dice, key)
        words[0] = self.case(words[0])
        return self.spoil(words) if rng.randrange(12) == 0 else words

    def rarer(self, dice, key):
        rng = self.rng
        if dice < 830:
            words = [b"BF.DEBUG", key]
        elif dice < 850:
            words = [b"BF.CARD", key]
        elif dice < 870:
            words = [b"BF.COUNTNEW", key] + self.items()
        elif dice < 885:
            words = [b"BF.RESET", key]
        elif dice < 900:
            return [b"BF.MERGE", key, rng.choice(KEYS)]
        elif dice < 925:
            return [b"COPY", key, rng.choice(KEYS)] + \
                rng.choice([[], [b"REPLACE"]])
        elif dice < 955:
            return self.option()
        else:
            return [b"DEL", key]
        return self.spoil(words) if rng.randrange(12) == 0 else words
