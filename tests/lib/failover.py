# SPDX-License-Identifier: BSD-3-Clause
#
# Three servers, three Sentinels, and writers that follow the Sentinels. Faults
# make them fail over. After each fault the tests check which server is the
# primary, whether all others follow it, how many acknowledged writes were lost,
# and whether each full synchronization was necessary.

import random
import re
import threading
import time

from lib import resp
from lib.replicas import Watch, digest, follow, info, node, wait_even
from lib.servers import wait_until

DOWN_AFTER_S = 2.0
FAILOVER_S = 3.0     # what it may take beside
SETTLE_S = 60

# Sentinel waits for four hello periods before it makes a returning primary follow,
# and checks once per INFO period: 18 s. It pings every second, and asks the other
# Sentinels every second, which may use up all the time that a failover may take.
# Tests with less time shorten these periods.
SHORT = ("info-period", 1000, "publish-period", 500, "ping-period", 300,
         "ask-period", 300)

GONE = (OSError, resp.Closed, resp.Malformed, AssertionError)


class Writer:
    """Adds items to its own key, in a thread. `wanted`: how many replicas it waits
    for. If fewer acknowledge an item, it counts as acknowledged by those."""

    def __init__(self, cluster, number, wanted, seed):
        self.cluster = cluster
        self.wanted = wanted
        self.key = "w%d" % number
        self.rng = random.Random(seed)
        self.acked = {0: [], 1: [], 2: []}
        self.lost = {0: 0, 1: 0, 2: 0}
        self.count = self.errors = 0
        self.last = time.monotonic()    # of what it wants
        self.gap = 0.0                  # the longest time without
        self.over = threading.Event()
        self.problem = None
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        conn = None
        while not self.over.is_set():
            try:
                conn = conn or self.cluster.connect(self.rng)
                self.add(conn)
            except GONE:
                self.errors += 1
                if conn is not None:
                    conn.close()
                conn = None
                self.over.wait(0.05)    # as clients do before they ask again
            except Exception as problem:  # noqa: B902 - told at the end
                self.problem = problem
                return
            self.over.wait(0.01)        # its pace
        if conn is not None:
            conn.close()

    def add(self, conn):
        items = ["%d" % (self.count + i) for i in range(self.rng.randint(1, 6))]
        self.count += len(items)        # none is ever tried again
        requests = [("BF.ADD", self.key, item) for item in items]
        if self.rng.random() < 0.1:
            requests += self.noise()
        if self.wanted:
            requests.append(("WAIT", self.wanted, 500))
        got = conn.pipeline(requests)
        bad = [r for r in got if isinstance(r, resp.Error)]
        if bad:
            raise resp.Closed(str(bad[0]).encode())
        reached = min(self.wanted, got[-1]) if self.wanted else 0
        self.acked[reached] += [i for i, new in zip(items, got) if new == 1]
        if reached == self.wanted:
            now = time.monotonic()
            self.gap = max(self.gap, now - self.last)
            self.last = now

    def noise(self):
        """Makes other changes, which only have to be equal on all servers."""
        name = "%s-%d" % (self.key, self.rng.randrange(3))
        return [("BF.ADD", name, self.count), self.rng.choice((
            ("PEXPIRE", name, 100), ("DEL", name), ("PERSIST", name),
            ("RENAME", name, self.key + "-3"),
            ("BF.INSERT", name, "CAPACITY", 50, "ITEMS", self.count)))]

    def check(self, conn):
        """Checks all items; counts the missing ones and forgets them."""
        for reached, items in self.acked.items():
            kept, count = [], len(items)
            for at in range(0, count, 1000):
                part = items[at:min(at + 1000, count)]
                got = conn.call("BF.MEXISTS", self.key, *part)
                assert isinstance(got, list), got
                kept += [item for item, is_in in zip(part, got) if is_in]
            self.lost[reached] += count - len(kept)
            items[:count] = kept        # more may have come meanwhile


class PyWriter(Writer):
    """A writer that uses the Sentinel client of redis-py."""

    def run(self):
        import redis.sentinel   # only those who use it need to have it

        sentinel = redis.sentinel.Sentinel(
            [s.address for s in self.cluster.watch.sentinels],
            socket_timeout=1.5, password=self.cluster.password)
        client = sentinel.master_for(self.cluster.watch.sentinels[0].name)
        while not self.over.is_set():
            try:
                self.add(client)
            except (redis.RedisError, resp.Closed):
                self.errors += 1
                self.over.wait(0.05)
            except Exception as problem:  # noqa: B902 - told at the end
                self.problem = problem
                return
            self.over.wait(0.01)

    def noise(self):
        return []

    def add(self, conn):
        super().add(Pipeline(conn))


class Pipeline:
    """Gives a redis-py client the methods of a Conn."""

    def __init__(self, client):
        self.client = client

    def pipeline(self, requests):
        with self.client.pipeline(transaction=False) as pipe:
            for request in requests:
                pipe.execute_command(*request)
            return pipe.execute()


class Cluster:
    """options: those of each node. make: the function that starts a node. The
    writers run from the beginning."""

    def __init__(self, seed, options=((), (), ()), password=None, writers=7,
                 sentinels=(), make=node, **watch):
        self.rng = random.Random(seed)
        self.password = password
        self.nodes, self.writers, self.watch = [], [], None
        self.rounds = []
        try:
            for more in options:
                secret = {"password": password} if password else {}
                self.nodes.append(make("--loglevel", "notice", *more, **secret))
            for other in self.nodes[1:]:
                follow(other, self.nodes[0])
            for number in range(writers):
                kind = PyWriter if number == 6 else Writer
                self.prepare(kind(self, number, (0, 1, 2, 0, 1, 2, 2)[number],
                                  self.rng.randrange(1 << 30)))
            if password is not None:
                watch["extra"] = "sentinel auth-pass bloom %s\n" % password
            self.watch = Watch(self.nodes[0], self.nodes[1:],
                               periods=sentinels, **watch)
            for writer in self.writers:
                writer.thread.start()
        except BaseException:
            self.end()
            raise

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            self.tell()
        self.end()
        assert kind is not None or not self.complaints, self.complaints

    complaints = None

    def prepare(self, writer):
        """Makes a filter with so few false positives that none hides a loss."""
        with self.nodes[0].conn() as conn:
            assert conn.call("BF.RESERVE", writer.key, "0.0000001",
                             100000) == b"OK"
        self.writers.append(writer)

    def tell(self):
        """Prints the logs after a failure."""
        names = self.nodes + (self.watch.sentinels if self.watch else [])
        for one in names:
            print("---- %s on port %d\n%s" % (
                type(one).__name__, one.port,
                one.log().decode("utf-8", "replace")[-6000:]))

    def end(self):
        for writer in self.writers:
            writer.over.set()
        for writer in self.writers:
            if writer.thread.is_alive():
                writer.thread.join()
        if self.watch:
            self.watch.stop()
        for one in self.nodes:
            try:
                one.stop()
            except AssertionError as problem:
                self.complaints = str(problem)
                one.kill()
                one.remove()

    # ---- who is who

    def connect(self, rng):
        """Connects to the primary that a Sentinel names, as clients do."""
        sentinel = rng.choice(self.watch.sentinels)
        with resp.Conn(sentinel.address, timeout=1) as conn:
            host, port = conn.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME",
                                   sentinel.name)
        return resp.Conn((host.decode(), int(port)), timeout=1.5,
                         password=self.password)

    def at(self, address):
        return next(n for n in self.nodes if n.address == address)

    def primary(self):
        return self.at(wait_until(self.watch.primary, 30, "one primary"))

    def others(self, than):
        return [n for n in self.nodes if n is not than]

    def is_settled(self, told=None):
        """Tells whether no Sentinel suspects a server and all servers follow the
        primary that all Sentinels name. Notes when that primary is new."""
        facts = [s.facts() for s in self.watch.sentinels]
        address = self.watch.primary()
        if told is not None and told.named is None and \
                address not in (None, told.old.address):
            told.named = time.monotonic() - told.begin
        if address is None or any(f["flags"] != "master" for f in facts) or \
                not all(n.runs() for n in self.nodes):
            return None
        primary = self.at(address)
        try:
            good = info(primary)["role"] == "master" and all(
                follows(n, primary) for n in self.others(primary))
        except GONE:
            return None
        return primary if good else None

    def wait_settled(self, told=None):
        return wait_until(lambda: self.is_settled(told), SETTLE_S,
                          "all follow one primary again", 0.05)

    def is_known(self):
        """Tells whether every Sentinel has seen that all replicas follow. A
        Sentinel that has not may tell a replica to follow while another Sentinel
        promotes it, and that failover fails."""
        count = len(self.nodes) - 1
        for sentinel in self.watch.sentinels:
            seen = [dict(zip(r[::2], r[1::2]))
                    for r in sentinel.ask("REPLICAS", sentinel.name)]
            good = [r for r in seen if r[b"flags"] == b"slave" and
                    r[b"role-reported"] == b"slave" and
                    r[b"master-link-status"] == b"ok"]
            if len(good) != count:
                return False
        return True

    # ---- a fault and what comes of it

    def round(self, fault):
        """Runs one failover; returns its description."""
        wait_until(self.is_known, SETTLE_S, "the Sentinels know it", 0.05)
        old = self.wait_settled()
        before = {n.port: syncs(n) for n in self.nodes}
        marks = {n.port: len(n.log()) for n in self.nodes + self.watch.sentinels}
        told = Round(fault, old)
        told.begin = time.monotonic()
        FAULTS[fault](self, told)
        told.new = self.wait_settled(told)
        told.settled = time.monotonic() - told.begin
        self.count_syncs(told, before, marks)
        told.split = any(b"-failover-abort-not-elected" in s.log()[marks[s.port]:]
                         for s in self.watch.sentinels)
        self.wait_progress()
        self.check(told)
        self.rounds.append(told)
        return told

    def wait_other(self, told):
        """Waits until all Sentinels name another primary, which agrees."""
        address = self.watch.wait_other(told.old.address, 60)
        told.named = time.monotonic() - told.begin
        return self.at(address)

    def wait_progress(self):
        """Waits until each writer gets the acknowledgements that it wants."""
        since = time.monotonic()
        for writer in self.writers:
            wait_until(lambda w=writer: w.problem or w.last > since, 30,
                       "a writer goes on")
            assert writer.problem is None, writer.problem

    def check(self, told):
        with told.new.conn(timeout=60) as conn:
            for writer in self.writers:
                before = dict(writer.lost)
                writer.check(conn)
                for reached, lost in writer.lost.items():
                    told.lost[reached] += lost - before[reached]
        assert told.lost[2] == 0, \
            "%s: %d items that two replicas acknowledged are lost" % (
                told, told.lost[2])

    def count_syncs(self, told, before, marks):
        for one in self.nodes:
            base = before[one.port] if one not in told.killed else (0, 0)
            full, partial = syncs(one)
            told.full += full - base[0]
            told.partial += partial - base[1]
            log = one.log()[marks[one.port]:].decode("utf-8", "replace")
            told.fulls += explain_fulls(log, info(one), told)

    def finish(self):
        """Checks that all servers have the same data, without expired keys, when
        no writer writes any more."""
        primary = self.wait_settled()
        for writer in self.writers:
            writer.over.set()
        for writer in self.writers:
            writer.thread.join()
        wait_until(lambda: len({digest(n) for n in self.nodes}) == 1, 20,
                   "all have the same data")
        wait_even(primary, *self.others(primary))
        self.check(Round("the end", primary, primary))


def follows(replica, primary):
    """Tells whether a replica follows the primary. A Sentinel may close the
    connection meanwhile."""
    try:
        got = info(replica)
    except GONE:
        return False
    return got["role"] == "slave" and got["master_link_status"] == "up" and \
        (got["master_host"], int(got["master_port"])) == primary.address


def syncs(server):
    """Returns how many (full, partial) synchronizations a server gave."""
    got = info(server, "stats")
    return int(got["sync_full"]), int(got["sync_partial_ok"])


class Round:
    def __init__(self, fault, old, new=None):
        self.fault, self.old, self.new = fault, old, new
        self.named = None       # seconds until all Sentinels named another one
        self.settled = None     # and until all followed it
        self.killed = set()     # those that lost their memory
        self.full = self.partial = 0
        self.fulls = []         # (needed, why)
        self.lost = {0: 0, 1: 0, 2: 0}
        self.split = False      # the Sentinels did not elect at the first try

    def __str__(self):
        return "%-18s named %s settled %4.1f s, %d partial %d full%s, lost %s%s" % (
            self.fault, "%4.2f s" % self.named if self.named else "none  ",
            self.settled or 0, self.partial, self.full,
            "".join(" (%s)" % why for _, why in self.fulls),
            "/".join(str(self.lost[n]) for n in (2, 1, 0)),
            ", election repeated" if self.split else "")


# ---- full synchronizations ---------------------------------------------------

FOLLOWS = re.compile(r"a replica follows.* id=(\d+) .* port=(\d+) "
                     r"history=(\w+) position=(\d+)")
NEEDS = re.compile(r"needs a full synchronization.* id=(\d+) .*kept_from=(\d+) ")


def explain_fulls(log, primary, told):
    """Returns [(whether it was needed, why)] for each synchronization in this log.
    It was needed if the replica had no data or that of another history, or if it
    had more than its history had at its end, because no other server has that, or
    less, and the primary began there: a start keeps no older changes in memory."""
    known = {primary["master_replid"]: int(primary["master_repl_offset"]),
             primary["master_replid2"]: int(primary["second_repl_offset"]) - 1}
    asked = {f[0]: f[1:] for f in FOLLOWS.findall(log)}
    lost = {n.port for n in told.killed if not keeps(n)}
    for who, kept_from in NEEDS.findall(log):
        port, history, position = asked[who]
        if history == "none":
            yield int(port) in lost, "no data"
        elif history not in known:
            yield True, "another history"
        else:
            more = int(position) - known[history]
            began = int(kept_from) == known[history]
            yield more > 0 or (began and more < 0), "%d bytes ahead" % more


def keeps(server):
    """Tells whether a server's data survives kill -9."""
    return "--appendonly=no" not in server.argv


# ---- faults ------------------------------------------------------------------

def kill(cluster, told):
    """Kills the primary (kill -9) and restarts it when there is a new one."""
    crash(told, told.old)
    cluster.wait_other(told)
    told.old.restart()


def stop(cluster, told):
    """Stops the primary (SIGSTOP), and continues it when there is a new one."""
    told.old.freeze()
    cluster.wait_other(told)
    told.old.thaw()


def command(cluster, told):
    """Sends SENTINEL FAILOVER."""
    ask_for_failover(cluster)
    cluster.wait_other(told)


def kill_early(cluster, told):
    """Kills the primary and restarts it before, during or after the failover. A
    server that lost its data must not return as the primary."""
    crash(told, told.old)
    if keeps(told.old):
        pause(cluster, 0.1, 3)
    else:
        cluster.wait_other(told)
    told.old.restart()


def stop_early(cluster, told):
    """Stops the primary and continues it before, during or after the failover."""
    told.old.freeze()
    pause(cluster, 0.5, 3)
    told.old.thaw()


def command_and_kill(cluster, told):
    """Sends SENTINEL FAILOVER and kills the old primary meanwhile."""
    ask_for_failover(cluster)
    pause(cluster, 0, 1)
    crash(told, told.old)
    cluster.wait_other(told)
    told.old.restart()


def command_and_stop(cluster, told):
    """Does the same with SIGSTOP: the old primary does not notice its pause."""
    ask_for_failover(cluster)
    pause(cluster, 0, 1)
    told.old.freeze()
    cluster.wait_other(told)
    told.old.thaw()


def both(cluster, told):
    """Kills the primary while a replica is stopped for a while."""
    other = cluster.rng.choice(cluster.others(told.old))
    other.freeze()
    pause(cluster, 0, 0.3)
    crash(told, told.old)
    pause(cluster, 0, 2)
    other.thaw()
    cluster.wait_other(told)
    told.old.restart()


FAULTS = {f.__name__: f for f in (kill, stop, command, kill_early, stop_early,
                                  command_and_kill, command_and_stop, both)}
# Tests judge the time until there is a new primary only for these faults.
PLAIN = ("kill", "stop", "command")


def crash(told, victim):
    victim.crash()
    told.killed.add(victim)


def pause(cluster, least, most):
    time.sleep(cluster.rng.uniform(least, most))


def ask_for_failover(cluster):
    """Repeats SENTINEL FAILOVER while the Sentinels think that the last failover
    is not over."""
    wait_until(lambda: any(s.ask("FAILOVER", s.name) == b"OK"
                           for s in cluster.watch.sentinels), 20,
               "a Sentinel begins", 0.1)
