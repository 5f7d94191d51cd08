# SPDX-License-Identifier: BSD-3-Clause
#
# What tests of the promise of copies in programs have: links to a server that are slow,
# or cut, also behind each frame; items, with the time when they were acknowledged; and
# copies in processes of their own, with a thread that asks them and looks for an answer
# that breaks the promise.

import itertools
import socket
import subprocess
import threading
import time
from pathlib import Path

from . import servers

PROBE = Path(servers.server_binary()).parent / "tests" / "local" / "local_probe"
STALE_SECONDS = 0.4
NO_WAIT, MISSING_IS_ABSENT = 1, 4
AGE_SECONDS = 3 # and a turn each 0.4 s


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
            for one, other, pass_on in self.ways(near, far):
                threading.Thread(target=self.forward, args=(one, other, pass_on),
                                 daemon=True).start()

    def ways(self, near, far):
        return (near, far, self.slow(0.002)), (far, near, self.slow(0.2))

    def slow(self, pause):
        """Returns a function that passes data on; false: it is time to cut."""
        def pass_on(data, target):
            if self.rng.random() < 0.1 and not self.over:
                time.sleep(self.rng.random() * pause)
            if self.rng.random() < 0.003 and not self.over:
                return False
            target.sendall(data)
            return True
        return pass_on

    def forward(self, source, target, pass_on):
        try:
            while (data := source.recv(1 << 16)) and pass_on(data, target):
                pass
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


class FrameLink(SlowLink):
    """Cuts each connection behind, or within, one frame of the server later than the
    one before."""

    MOST = 60

    def __init__(self, port, rng):
        self.frames = itertools.count(rng.randrange(self.MOST))
        super().__init__(port, rng)

    def ways(self, near, far):
        left = next(self.frames) % self.MOST
        return (near, far, lambda data, to: to.sendall(data) or True), \
            (far, near, self.until(left))

    def until(self, frames):
        """Returns a function that passes on so many frames."""
        pending, passed = bytearray(), 0

        def pass_on(data, target):
            nonlocal passed
            pending.extend(data)
            while end := frame_end(pending, 0):
                if passed == frames and not self.over:
                    target.sendall(pending[:self.rng.randrange(end)])
                    return False
                target.sendall(pending[:end])
                del pending[:end]
                passed += 1
            return True
        return pass_on


def frame_end(data, at):
    """Returns where the RESP value at a place ends; 0: it is not complete."""
    line = data.find(b"\r\n", at)
    if line < 0:
        return 0
    kind, end = data[at:at + 1], line + 2
    if kind in b"$=!*>~%":
        count = int(data[at + 1:line])
        if kind in b"$=!":
            end += max(0, count + 2)
            return end if end <= len(data) else 0
        for _ in range(max(0, count) * (2 if kind == b"%" else 1)):
            end = frame_end(data, end)
            if end == 0:
                return 0
    return end


class Items:
    """What was added and acknowledged, and when something may have removed it."""

    def __init__(self, ageing=False):
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

    def __init__(self, url, items, rng, flags=0, key="k"):
        self.items, self.rng, self.over = items, rng, False
        self.broken, self.asked, self.unknown = [], 0, 0
        self.child = subprocess.Popen(
            [PROBE, url, key, str(int(STALE_SECONDS * 1000)), str(flags | NO_WAIT)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.thread = None
        self.start()

    def start(self):
        self.over = False
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
