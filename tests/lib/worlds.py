# SPDX-License-Identifier: BSD-3-Clause
#
# A world is what a test does not ask about: threads, databases, defragmentation,
# syncs, rewrites, huge pages, and the door through which its clients come. A seed
# draws it. What a test names itself stays as named. Groups with a world start all
# their servers in it; WORLD=n does that with each server of a run of tests, without
# the door.
#
# Huge pages: "never" is forced by prctl. No process can force "always" on another, so
# there the allocator asks for them, which a kernel with the setting madvise grants; the
# stacks and the program itself have them only where the machine's setting is always.

import ctypes
import os
import random
import re

DOORS = ("port", "socket", "password", "user", "tls")
PR_SET_THP_DISABLE = 41
DEFRAG = (("activedefrag", "yes"), ("active-defrag-ignore-bytes", 1),
          ("active-defrag-threshold-lower", 1), ("active-defrag-threshold-upper", 1))


class World:
    def __init__(self, seed, doors=DOORS):
        rng = random.Random(seed)
        self.seed = seed
        self.drawn = [("threads", rng.randrange(1, 5)),
                      ("databases", rng.choice((16, 32))),
                      ("appendfsync", rng.choice(("always", "everysec", "no")))]
        if rng.random() < 0.5:
            self.drawn += DEFRAG
        if rng.random() < 0.5:
            self.drawn += [("auto-aof-rewrite-percentage", rng.choice((1, 20))),
                           ("auto-aof-rewrite-min-size", 1)]
        self.huge_pages = rng.choice(("always", "never", "as the machine has them"))
        self.door = rng.choice(doors)

    def options(self, named, conf=None):
        """The options of a server whose test names others."""
        text = " ".join(map(str, named))
        return [word for name, value in self.drawn
                if not re.search(r"--%s\b(?!-)" % name, text) and
                not re.search(r"^\s*%s\s" % name, conf or "", re.M)
                for word in ("--" + name, value)]

    def prepare(self):
        """What the child does before it becomes the server; or None."""
        if self.huge_pages != "never":
            return None
        prctl = ctypes.CDLL(None).prctl
        return lambda: prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)

    def env(self):
        """What the world adds to the environment."""
        return {"MALLOC_CONF": "thp:always"} if self.huge_pages == "always" else {}

    def __str__(self):
        return "world %d: %s, huge pages %s, by %s" % (
            self.seed, " ".join("--%s %s" % pair for pair in self.drawn),
            self.huge_pages, self.door)


def of_run():
    """The world of a run of tests, or None: each test has its own."""
    seed = int(os.environ.get("WORLD") or 0)
    test = os.environ.get("PYTEST_CURRENT_TEST", "").split(" ")[0]
    return World(random.Random("%d %s" % (seed, test)).randrange(1 << 32),
                 ("port",)) if seed else None
