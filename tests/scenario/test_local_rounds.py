# SPDX-License-Identifier: BSD-3-Clause
#
# The promise of a copy of a filter: when it says absent, the server would have said
# so at some moment of the last max_stale_ms before the call. Each round has a writer,
# copies in processes of their own, one of them behind a link that is slow and cut, and
# faults: kill -9 and a restart, SIGSTOP of the server or of a copy, closed connections,
# and all that makes the key another one. An item that was acknowledged max_stale_ms
# before a question, and that nothing has removed since, is never absent; and when the
# faults are over, each copy is soon fresh, and has every item.
#
# ROUNDS=500 is a long run, SEED=n repeats one (make local-rounds).

import os
import random
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest

from lib import crash, resp, servers
from lib.servers import wait_until

ROUNDS = crash.amount("ROUNDS", 3)
PROBE = Path(servers.server_binary()).parent / "tests" / "local" / "local_probe"
STALE_SECONDS = 0.4
ROUND_SECONDS = 1.6
FRESH_SECONDS = 30 # at most, on a busy machine; 3 on one that is not
AGE_SECONDS = 3
MISSING_IS_ABSENT = 4
KINDS = [("EXPANSION", 2), ("NONSCALING",), ("EXPANSION", 1), ("DELETABLE",),
         ("AGEING", AGE_SECONDS)]
LAYOUTS = ["native", "redisbloom", "valkeybloom"]


class SlowLink:
    """Forwards connections to a server, and holds back or cuts them now and then."""

    def __init__(self, port, rng):
        self.target, self.rng, self.over = port, rng, False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.threads = [threading.Thread(target=self.accept, daemon=True)]
        self.threads[0].start()

    def accept(self):
        while not self.over:
            try:
                near = self.listener.accept()[0]
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.target), 5)
            except OSError:
                near.close()
                continue
            for one, other, pause in ((near, far, 0.002), (far, near, 0.2)):
                threading.Thread(target=self.forward, args=(one, other, pause),
                                 daemon=True).start()

    def forward(self, source, target, pause):
        try:
            while data := source.recv(1 << 16):
                if self.rng.random() < 0.1 and not self.over:
                    time.sleep(self.rng.random() * pause)
                if self.rng.random() < 0.003 and not self.over:
                    break
                target.sendall(data)
        except OSError:
            pass
        for each in source, target:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            each.close()

    def close(self):
        self.over = True
        self.listener.close()


class Items:
    """What was added and acknowledged, and when something may have removed it."""

    def __init__(self, ageing):
        self.lock, self.ageing = threading.Lock(), ageing
        self.added = []    # (sent, acknowledged, item)
        self.removed = 0.0 # begin of the last command that may remove all

    def is_broken(self, sent, acknowledged, asked):
        """Whether such an item may not be absent in an answer that came now."""
        with self.lock:
            removed = self.removed
        return (acknowledged + STALE_SECONDS < asked and sent > removed and
                not (self.ageing and sent + AGE_SECONDS < time.monotonic()))


class Asker:
    """A copy in a process of its own, and a thread that asks it."""

    def __init__(self, port, flags, items, rng):
        self.items, self.rng, self.over = items, rng, False
        self.broken, self.asked, self.unknown = [], 0, 0
        self.child = subprocess.Popen(
            [PROBE, "redis://127.0.0.1:%d" % port, "k",
             str(int(STALE_SECONDS * 1000)), str(flags | 1)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def ask(self, item):
        self.child.stdin.write(item + "\n")
        self.child.stdin.flush()
        return self.child.stdout.readline().strip()

    def run(self):
        while not self.over:
            added = self.items.added
            if not added:
                time.sleep(0.001)
                continue
            at = len(added) - 1 - min(int(self.rng.expovariate(0.01)), len(added) - 1)
            sent, acknowledged, item = added[at]
            asked = time.monotonic()
            said = self.ask(item)
            self.asked += 1
            self.unknown += said == "unknown"
            if said == "absent" and self.items.is_broken(sent, acknowledged, asked):
                self.broken.append((item, asked - acknowledged))
            time.sleep(self.rng.random() * 0.002)

    def stop(self):
        self.over = True
        self.thread.join()

    def close(self):
        self.stop()
        self.child.stdin.close()
        assert self.child.wait(20) == 0
        self.child.stdout.close()


class Round:
    def __init__(self, number, rng, start_server, folder):
        self.number, self.rng, self.start = number, rng, start_server
        self.options = ("--dir", folder, "--appendonly", "yes", "--appendfsync",
                        "always", "--threads", rng.choice([1, 2]),
                        "--bloom-layout", rng.choice(LAYOUTS))
        self.port = servers.free_port()
        self.server = start_server(*self.options, port=self.port)
        self.kind = rng.choice(KINDS)
        self.items = Items(self.kind[0] == "AGEING")
        self.link = SlowLink(self.port, random.Random(rng.random()))
        self.conn = self.server.conn(timeout=60 * servers.time_factor())
        self.create()
        self.askers = [Asker(port, flags, self.items, random.Random(rng.random()))
                       for port, flags in ((self.port, 0), (self.link.port, 0),
                                           (self.port, MISSING_IS_ABSENT))]
        self.number_of_items = 0

    def create(self, key="k"):
        kind = self.kind
        native = "native" in self.options
        if kind[0] in ("DELETABLE", "AGEING") and not native:
            kind = self.kind = ("EXPANSION", 2)
            self.items.ageing = False
        self.conn.call("BF.RESERVE", key, "0.000001",
                       20000 if kind == ("NONSCALING",) else 300, *kind)

    def remove(self, *commands):
        """Sends commands that may remove items."""
        with self.items.lock:
            self.items.removed = time.monotonic()
        for command in commands:
            self.conn.call(*command)
            if command[0] == "reserve":
                self.create(command[1])

    def add(self):
        count = self.rng.choice([1, 1, 1, 30])
        items = ["%d-%d" % (self.number, self.number_of_items + i)
                 for i in range(count)]
        sent = time.monotonic()
        said = self.conn.call("BF.MADD", "k", *items)
        acknowledged = time.monotonic()
        self.number_of_items += count
        # A full filter answers the rest with one error.
        self.items.added.extend((sent, acknowledged, item)
                                for item, one in zip(items, said)
                                if not isinstance(one, resp.Error))

    # ---- faults ------------------------------------------------------------

    def kill(self):
        self.server.kill()
        time.sleep(self.rng.random() * 0.3)
        self.server = self.start(*self.options, port=self.port)
        self.conn = self.server.conn(timeout=60 * servers.time_factor())

    def stop_server(self):
        os.kill(self.server.pid, signal.SIGSTOP)
        time.sleep(self.rng.random() * 2 * STALE_SECONDS)
        os.kill(self.server.pid, signal.SIGCONT)

    def stop_copy(self):
        pid = self.rng.choice(self.askers).child.pid
        os.kill(pid, signal.SIGSTOP)
        for _ in range(self.rng.randrange(20)):
            self.add()
        time.sleep(self.rng.random() * 2 * STALE_SECONDS)
        os.kill(pid, signal.SIGCONT)

    def cut(self):
        self.conn.call("CLIENT", "KILL", "TYPE", "pubsub")

    def delete(self):
        self.remove(("DEL", "k"))
        time.sleep(self.rng.random() * 0.1)
        self.create()

    def rename(self):
        with self.items.lock:
            self.items.removed = time.monotonic()
        self.create("other")
        self.conn.call("RENAME", "other", "k")

    def flush(self):
        self.remove(("FLUSHALL",))
        self.create()

    def reset(self):
        self.remove(("BF.RESET", "k"))

    def copy(self):
        """Another filter with the same items."""
        self.conn.call("COPY", "k", "other", "REPLACE")
        self.conn.call("RENAME", "other", "k")

    def fault(self):
        self.rng.choice([self.kill, self.stop_server, self.stop_copy, self.cut,
                         self.delete, self.rename, self.flush, self.reset,
                         self.copy])()

    def run(self):
        end = time.monotonic() + ROUND_SECONDS
        pause = self.rng.choice([0, 0.0005, 0.005])
        next_fault = time.monotonic() + self.rng.random() * 0.8
        while time.monotonic() < end:
            self.add()
            time.sleep(pause)
            if time.monotonic() > next_fault:
                self.fault()
                next_fault = time.monotonic() + 0.1 + self.rng.random() * 0.8

    def check(self):
        self.link.over = True # it cuts nothing more
        for asker in self.askers:
            asker.stop()
        self.remove(("DEL", "k"))
        self.create()
        self.add()
        begun = time.monotonic()
        for asker in self.askers:
            wait_until(lambda: asker.ask("nothing") == "absent",
                       FRESH_SECONDS, "the copy is fresh")
        late = time.monotonic() - begun
        for asker in self.askers:
            wait_until(lambda: self.is_present(asker), 20, "it has the last item")
            assert asker.broken == [], (self.kind, self.options)
        return late

    def is_present(self, asker):
        item = self.items.added[-1][2]
        if self.items.ageing:
            self.conn.call("BF.ADD", "k", item) # it may have aged by now
        return asker.ask(item) == "present"

    def close(self):
        for asker in self.askers:
            asker.close()
        self.link.close()
        self.server.kill()


@pytest.mark.slow
def test_a_copy_never_breaks_its_promise(start_server, tmp_path):
    slowest, asked, unknown = 0, 0, 0
    for number, seed in enumerate(crash.seeds(ROUNDS)):
        folder = tmp_path / str(number)
        folder.mkdir()
        one = Round(number, random.Random(seed), start_server, folder)
        try:
            one.run()
            slowest = max(slowest, one.check())
        finally:
            one.close()
        asked += sum(asker.asked for asker in one.askers)
        unknown += sum(asker.unknown for asker in one.askers)
    print("local rounds: %d, questions %d, unknown %d, fresh again in %.2f s" %
          (ROUNDS, asked, unknown, slowest))
