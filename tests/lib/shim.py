# SPDX-License-Identifier: BSD-3-Clause
#
# Controls the preload library of tests/shim from a test: rules that kill, fail or
# delay the N-th call, counters of calls, and the log of a recording.
# tests/shim/control.h describes the file that both share.

import errno
import mmap
import os
import struct
from collections import Counter, namedtuple
from pathlib import Path

from lib import servers

MAGIC, RULES, RULES_AT, COUNTS_AT, LOG_AT = 0x6d696873, 16, 256, 2048, 8192
CALLS = ["open", "create", "read", "write", "sync", "rename", "link", "unlink",
         "mkdir", "truncate", "send", "other", "alloc", "map", "thread"]
KINDS = ["none", "lock", "snapshot", "snapshot.tmp", "base", "base.tmp", "incr",
         "incr.tmp", "manifest", "manifest.tmp", "dir", "journal", "other",
         "socket", "mark", "room"]
ACTIONS = {"kill-before": 1, "kill-after": 2, "fail": 3, "delay": 4, "lie": 5}
TYPES = [None, "create", "write", "sync-begin", "sync-end", "sync-failed",
         "rename", "link", "unlink", "mkdir", "truncate", "send-begin",
         "send-end", "opened", "other"]
FOR_GOOD, SHORT, EVERY = 1, 2, 4
MEMORY_CALLS = ["alloc", "map", "thread"]
FILE_CALLS = [c for c in CALLS if c not in ["send"] + MEMORY_CALLS]
# The calls that change data, so that a crash or failure in them matters.
CHANGES = ["create", "write", "sync", "rename", "link", "unlink", "mkdir",
           "truncate"]
# A full disk takes what is written into reserved blocks.
FILES = [k for k in KINDS if k not in ("socket", "room")]

CONTROL = struct.Struct("<6I4Q")
RULE = struct.Struct("<8I3Q2I")
RECORD = struct.Struct("<IIBBBBIQQqq")

Record = namedtuple("Record", "type call kind handle number time a b data")
Rule = namedtuple("Rule", "armed seen fired call kind")


def bits(names, chosen):
    return sum(1 << names.index(name) for name in chosen)


def library():
    return Path(servers.server_binary()).parent / "tests" / "shim.so"


class Shim:
    """One shared file for one data directory, which outlives the processes."""

    def __init__(self, folder, data_dir, record=False, log_bytes=1 << 20,
                 skip_syncs=False):
        assert library().exists(), "no %s (make %s)" % (library(), library())
        self.path = os.path.join(folder, "shim")
        self.data_dir = str(data_dir)
        size = LOG_AT + log_bytes
        with open(self.path, "w+b") as file:
            file.truncate(size)
            self.map = mmap.mmap(file.fileno(), size)
        self.map[:CONTROL.size] = CONTROL.pack(
            MAGIC, 0, int(record), 0, int(skip_syncs), 0, 0, 0, 0, 0)

    def close(self):
        self.map.close()

    def env(self):
        asan = os.environ.get("ASAN_OPTIONS", "")
        return {"LD_PRELOAD": str(library()), "BLOOMERY_SHIM": self.path,
                "BLOOMERY_SHIM_DIR": self.data_dir,
                "ASAN_OPTIONS": (asan + ":" if asan else "") +
                "verify_asan_link_order=0"}

    # ---- rules -------------------------------------------------------------

    def arm(self, slot, action, calls, kinds=FILES, nth=1, error=errno.EIO,
            flags=0, delay_ms=0):
        at = RULES_AT + slot * RULE.size
        self.map[at:at + RULE.size] = RULE.pack(
            0, ACTIONS[action], bits(CALLS, calls), bits(KINDS, kinds),
            flags, error, delay_ms, 0, nth, 0, 0, 0, 0)
        self.map[at:at + 4] = struct.pack("<I", 1)

    def disarm(self, slot):
        at = RULES_AT + slot * RULE.size
        self.map[at:at + 4] = struct.pack("<I", 0)

    def rule(self, slot):
        at = RULES_AT + slot * RULE.size
        got = RULE.unpack(self.map[at:at + RULE.size])
        return Rule(bool(got[0]), got[9], got[10], CALLS[got[11]],
                    KINDS[got[12]])

    # ---- what happened -----------------------------------------------------

    def counts(self):
        """Returns a Counter of (call, kind)."""
        got = struct.unpack("<256Q", self.map[COUNTS_AT:COUNTS_AT + 2048])
        out = Counter()
        for at, count in enumerate(got):
            if count:
                out[CALLS[at // 16], KINDS[at % 16]] = count
        return out

    def recording(self, on):
        self.map[8:12] = struct.pack("<I", int(on))

    def log(self):
        """Returns all records so far, in order."""
        control = CONTROL.unpack(self.map[:CONTROL.size])
        assert not control[3], "the log of the recording was too small"
        out, at, end = [], LOG_AT, LOG_AT + control[8]
        while at < end:
            (size, data_size, kind_of, call, kind, _, handle, number, time_ns,
             a, b) = RECORD.unpack(self.map[at:at + RECORD.size])
            data = self.map[at + RECORD.size:at + RECORD.size + data_size]
            out.append(Record(TYPES[kind_of], CALLS[call], KINDS[kind], handle,
                              number, time_ns / 1e9, a, b, data))
            at += size
        return out
