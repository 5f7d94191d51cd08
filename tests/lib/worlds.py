# SPDX-License-Identifier: BSD-3-Clause
#
# A world is what a test does not ask about: threads, databases, defragmentation,
# syncs, rewrites, huge pages, and the door through which its clients come. A seed
# draws it. What a test names itself stays as named.
#
# Each test starts its servers in a world of the run's seed and the test's name. By
# default VERSION gives the seed: CI of one release always sees the same worlds.
# WORLD=n gives another seed, WORLD=0 starts all servers as their tests name them.
# Sanitizer builds leave out syncs and rewrites, which take tests of journals a tenth
# more time there.
#
# Clients of conn() come by the port or by a socket: pytest.mark.port names the port.
# Only groups with a world of their own draw a password, users or TLS. With those most
# tests would have to name the port: they send raw bytes and count replies, or let
# redis-py, replicas and other programs connect, which know no password or certificate.
#
# Huge pages: "never" is forced by prctl. No process can force "always" on another, so
# there the allocator asks for them, which a kernel with the setting madvise grants; the
# stacks and the program itself have them only where the machine's setting is always.

import ctypes
import os
import random
import re
import zlib
from pathlib import Path

VERSION = Path(__file__).resolve().parents[2] / "VERSION"
DOORS = ("port", "socket", "password", "user", "tls")
PR_SET_THP_DISABLE = 41
COSTLY = ("appendfsync", "auto-aof-rewrite-percentage", "auto-aof-rewrite-min-size")
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


def seed_of_run():
    return int(os.environ.get("WORLD") or zlib.crc32(VERSION.read_bytes()) % 9999 + 1)


class Drawn:
    """The worlds of this process, by test. What all tests of a file share has the
    world of its file. doors: of the next world."""

    def __init__(self):
        self.worlds, self.file, self.doors = {}, None, DOORS[:1]

    def world(self, lean=False):
        """The world of the test that runs, or None. lean: without what costs time."""
        seed = seed_of_run()
        name = self.file or \
            os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
        if seed == 0:
            return None
        if name not in self.worlds:
            rng = random.Random("%d %s" % (seed, name))
            world = World(rng.randrange(1 << 32), self.doors)
            world.drawn = [pair for pair in world.drawn
                           if not (lean and pair[0] in COSTLY)]
            self.worlds[name] = world
        return self.worlds[name]

    def describe(self, test):
        """The worlds of a test, for its report."""
        found = [str(self.worlds[name]) for name in (test.partition("::")[0], test)
                 if name in self.worlds]
        return "\n".join([*found, "WORLD=%d repeats it, WORLD=0 has none" %
                          seed_of_run()]) if found else ""


of_run = Drawn()
