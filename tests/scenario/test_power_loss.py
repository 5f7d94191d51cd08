# SPDX-License-Identifier: BSD-3-Clause
#
# Power failures. The test records a server under load: all its changes to files, and
# the time of each reply. For points of the recording it builds images of possible
# disk contents (lib/images.py). A server must start on each image without help, and
# have every write with a durable reply.
#
# ROUNDS=10000 tests more images, SEED=n repeats a run (make power-loss).

import random
import time

import pytest

from lib import crash, images, resp, servers, shim
from lib.workload import Workload

pytestmark = pytest.mark.slow

ROUNDS = crash.amount("ROUNDS", 350)
# In addition to the second that everysec may lose: a group, a sync, and a
# machine that schedules threads late.
SLACK_SECONDS = 0.25 * servers.time_factor()


class Session:
    """A recorded server, and what its clients were promised."""

    def __init__(self, seed, *options):
        self.options = ("--auto-aof-rewrite-percentage", "0") + options
        self.rng = random.Random(seed)
        self.store = crash.Store(*self.options)
        # A sparse file: a slow machine writes more while it waits for a
        # rewrite.
        self.shim = self.store.add_shim(record=True, log_bytes=1 << 30,
                                        skip_syncs=True)
        self.loads = []
        self.used_ports = []
        self.windows = []   # no journal: (off, on requested, on confirmed)
        self.saves = []     # (requested, done)
        self.kills = []     # when the servers of loads were killed
        self.on_snapshots = "yes" not in options
        self.everysec = "always" not in options

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.store.__exit__()

    def start(self):
        """Starts the server, after the first time on the state that a kill
        left."""
        if self.store.child is not None:
            self.store.kill()
            self.kills.append(time.monotonic())
            self.loads[-1].lost()
        self.store.start(port=self.new_port())
        load = Workload(self.rng.randrange(1 << 30), len(self.loads))
        self.loads.append(load)
        self.conn = self.store.conn()
        load.connect(self.store.address(), crash.payload(self.conn))

    def new_port(self):
        """Makes a connection whose two ports were not used before, because the
        ports identify a connection."""
        port = servers.free_port()
        while port in self.used_ports:
            port = servers.free_port()
        self.used_ports.append(port)
        return port

    def work(self, commands):
        self.loads[-1].pump(commands=commands)

    def call(self, *words):
        """Runs an operator's command while the writers work."""
        self.conn.send(resp.command(*words))
        self.work(50)
        reply = self.conn.read()
        assert not isinstance(reply, Exception), (words, reply)

    def save(self, how):
        begun = time.monotonic()
        self.call(how)
        while crash.info(self.conn)["rdb_bgsave_in_progress"] != "0":
            self.work(50)
        self.saves.append((begun, time.monotonic()))

    def rewrite(self):
        before = self._rewrites()
        self.call("BGREWRITEAOF")
        while self._rewrites() == before:
            self.work(20)

    def _rewrites(self):
        return int(crash.info(self.conn)["aof_rewrites"])

    def switch_off_and_on(self, save):
        off = time.monotonic()
        self.call("CONFIG", "SET", "appendonly", "no")
        servers.wait_until(lambda: crash.info(self.conn)["journal_state"] ==
                           "off", 10, "the journal is off", 0.001)
        self.work(200)
        if save:
            self.save("BGSAVE")
        before = self._rewrites()
        on = time.monotonic()
        self.call("CONFIG", "SET", "appendonly", "yes")
        while self._rewrites() == before:
            self.work(50)
        self.windows.append((off, on, time.monotonic()))
        self.work(200)

    def end(self):
        """Ends the recording; the state can be queried from here on."""
        self.loads[-1].settle()
        self.conn.close()
        self.log = self.shim.log()
        self.store.kill()
        for load in self.loads:
            assert not load.errors(), load.errors()[:3]
            load.close()
        self.recording = images.Recording(self.log)
        return self

    def oldest_unsynced(self):
        """Returns the longest time that a group waited for the end of its
        sync."""
        begun, first, worst = {}, {}, 0
        for record in self.log:
            if record.kind != "incr":
                continue
            if record.type == "write":
                first.setdefault(record.handle, record.time)
            elif record.type == "sync-begin":
                begun[record.number] = first.pop(record.handle, None)
            elif record.type == "sync-end" and begun[record.a] is not None:
                worst = max(worst, record.time - begun[record.a])
        return worst

    # ---- points ------------------------------------------------------------

    def points(self, count):
        """Chooses half of the points anywhere, and half near changes of names
        and syncs."""
        names = ("create", "rename", "unlink", "link", "mkdir", "truncate")
        busy = [i for i, record in enumerate(self.log)
                if record.type in names or
                (record.type.startswith("sync") and record.kind != "incr")]
        for number in range(count):
            if number % 2:
                at = self.rng.choice(busy) + self.rng.randrange(-1, 2)
            else:
                at = self.rng.randrange(len(self.log))
            at = max(0, min(len(self.log) - 1, at))
            yield at, self.rng.randrange(1 << 62)

    def required(self, load, point):
        """Returns the operations that were promised when power was lost."""
        now = self.recording.times[point]
        before = None
        if self.on_snapshots:   # later saves lack what the kill took
            end = (self.kills + [now])[self.loads.index(load)]
            done = [asked for asked, done in self.saves
                    if done <= min(now, end)]
            before = done[-1] if done else 0
        elif self.everysec:
            before = now - 1 - SLACK_SECONDS
        for off, _, seen in self.windows:
            if off <= now < seen:
                before = off
        required = load.required(self.recording, point, before)
        # Operations acknowledged while the first base was written are in an
        # increment, and on the disk by the time of the next promise.
        for _, on, seen in self.windows:
            if seen <= now:
                at_on = load.required(self.recording, point, on)
                at_seen = load.required(self.recording, point, seen)
                required = [all_of if all_of > some else sure
                            for all_of, some, sure
                            in zip(required, at_seen, at_on)]
        return required

    def try_image(self, job):
        point, seed = job
        rng = random.Random(seed)
        how = images.choose(rng, self.recording, point)
        where = "%s at record %d of %d (%s %s)" % (
            type(how).__name__, point, len(self.log), self.log[point].type,
            self.log[point].kind)
        with crash.Store(*self.options, data="none yet") as store:
            images.write(self.recording.image(point, how), store.data)
            try:
                store.start()
            except AssertionError as problem:
                raise AssertionError("%s: %s" % (where, problem)) from None
            for load in self.loads:
                crash.verify(store, load, self.required(load, point), where)
            with store.conn() as conn:
                assert conn.call("BF.ADD", "afterwards", "x") == 1
            store.assert_healthy()
        return type(how).__name__

    def try_images(self, count):
        print("records %d, commands %d" % (
            len(self.log), sum(load.answered() for load in self.loads)))
        return crash.each(self.points(count), self.try_image)


# ---- recordings ------------------------------------------------------------

def saves_and_rewrites(session):
    session.start()
    session.work(300)
    session.save("BGSAVE")
    session.work(200)
    session.rewrite()
    session.work(200)
    session.start()
    session.rewrite()
    session.work(200)
    session.save("SAVE")
    session.work(200)


def many_rewrites(session):
    session.start()
    for _ in range(20):
        session.rewrite()


def switched_off_and_on(session):
    session.start()
    session.work(300)
    session.switch_off_and_on(save=False)
    session.switch_off_and_on(save=True)
    session.start()
    session.work(200)


def snapshots_only(session):
    session.start()
    for how in ("BGSAVE", "SAVE", "BGSAVE"):
        session.work(200)
        session.save(how)
    session.work(100)
    session.start()
    session.save("SAVE")
    session.work(100)


def several_seconds(session):
    """Records long enough for a promise of everysec."""
    session.start()
    session.loads[-1].window = 6
    until = time.monotonic() + 4
    while time.monotonic() < until:
        session.work(20)
        if session.rng.random() < 0.02:
            session.rewrite()
        session.loads[-1].pump(0.04, fill=False)


NO_JOURNAL = ("--appendonly", "no")
ALWAYS = ("--appendonly", "yes", "--appendfsync", "always")
EVERYSEC = ("--appendonly", "yes", "--appendfsync", "everysec")

# name: (recording, options, its share of the images, images per recording)
RECORDINGS = {"saves": (saves_and_rewrites, ALWAYS, 0.25, 150),
              "rewrites": (many_rewrites, ALWAYS, 0.2, 40),
              "switches": (switched_off_and_on, ALWAYS, 0.2, 150),
              "snapshots": (snapshots_only, NO_JOURNAL, 0.1, 100),
              "everysec": (several_seconds, EVERYSEC, 0.25, 250)}


@pytest.mark.parametrize("name", RECORDINGS)
def test_every_image_starts_and_has_the_promised_data(name):
    record, options, share, each = RECORDINGS[name]
    kinds = []
    total = round(ROUNDS * share)
    for seed in crash.seeds(-(-total // each)):
        with Session(seed, *options) as session:
            record(session)
            session.end()
            print("unsynced for %.3f s at most" % session.oldest_unsynced())
            kinds += session.try_images(min(each, total - len(kinds)))
    print(name, "images", {kind: kinds.count(kind) for kind in set(kinds)})


# ---- the images can find something ------------------------------------------

def found_without_sync_of(kind, seed):
    """Tells whether images detect that the server's syncs of a kind do
    nothing."""
    session = Session(seed, "--appendonly", "yes", "--appendfsync", "always")
    with session:
        session.shim.arm(0, "lie", ["sync"], [kind],
                         flags=shim.FOR_GOOD)
        session.start()
        session.work(200)
        session.rewrite()
        session.work(200)
        session.end()
        for point in session.points(80):
            try:
                session.try_image(point)
            except AssertionError:
                return True
    return False


@pytest.mark.parametrize("kind", ["incr", "base.tmp", "manifest.tmp",
                                  "journal"])
def test_a_missing_sync_is_found(kind):
    assert found_without_sync_of(kind, crash.seeds(1)[0])
