# SPDX-License-Identifier: BSD-3-Clause
#
# Memory runs out: by an address-space limit, and by allocations, mappings and thread
# starts that fail in any thread (tests/shim). Clients fill the memory and send all
# other commands as well. The server never dies. A command that needs more memory gets
# an OOM error. Meanwhile PING, INFO, DEL, SAVE, SHUTDOWN and new connections work.
#
# ROUNDS=300 runs more random rounds, SEED=n repeats a run (make
# out-of-memory).

import collections
import errno
import os
import random
import resource
import tempfile
import time

import pytest

from lib import crash, resp, servers, shim

# A sanitizer's own allocator ends the process.
pytestmark = [pytest.mark.slow,
              pytest.mark.skipif(servers.sanitized(), reason="no jemalloc")]

ROUNDS = crash.amount("ROUNDS", 6)
MIB = 1 << 20
IDLE_SECONDS = 1.2  # the longest tick, and a reserve


def oom(reply):
    return isinstance(reply, resp.Error) and reply.args[0].startswith("OOM")


class Full:
    """A server, and connections that reconnect when the server cuts them."""

    def __init__(self, rng, *options, env=None):
        self.rng = rng
        self.cuts = 0
        self.errors = collections.Counter()
        self.server = servers.Server(*options, env=env,
                                     threads=rng.choice((1, 1, 2, 4)))
        self.conns = {}
        self.keys = 0
        self.made = []

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        for conn in self.conns.values():
            conn.close()
        if kind is not None:
            self.server.kill()

    def alive(self, what):
        code = self.server.child.poll()
        assert code is None, "died with %s at %s; its log:\n%s" % (
            code, what, self.server.log().decode("utf-8", "replace")[-4000:])

    def limit(self, extra_bytes):
        """Limits the address space to this much more than the server uses
        now."""
        with open("/proc/%d/statm" % self.server.pid) as file:
            pages = int(file.read().split()[0])
        bytes_max = pages * resource.getpagesize() + extra_bytes
        resource.prlimit(self.server.pid, resource.RLIMIT_AS,
                         (bytes_max, resource.RLIM_INFINITY))
        return bytes_max

    def call(self, *args, name="one"):
        """Returns the reply, or None if the server cut the connection because
        memory was short."""
        try:
            if name not in self.conns:
                self.conns[name] = self.server.conn()
            reply = self.conns[name].call(*args)
        except (resp.Closed, OSError) as error:
            if isinstance(error, TimeoutError):
                self.alive(args)
                raise AssertionError("no reply to %r" % (args,)) from error
            self.drop(name)
            self.cuts += 1
            reply = None
        self.alive(args)
        if oom(reply):
            self.errors[args[0]] += 1
        return reply

    def drop(self, name):
        conn = self.conns.pop(name, None)
        if conn is not None:
            conn.close()

    def reserve(self, items):
        key = "f:%d" % self.keys
        self.keys += 1
        reply = self.call("BF.RESERVE", key, "0.01", items, "NONSCALING",
                          name="filler")
        if reply == b"OK":
            self.made.append(key)
        return reply

    def fill(self):
        """Fills memory until every size gets OOM."""
        self.until(lambda r: r == b"OK", "REPLICAOF", "NO", "ONE")
        items, calls = 100_000_000, 0
        while items >= 1:
            reply = self.reserve(items)
            calls += 1
            if reply != b"OK":
                assert reply is None or oom(reply), reply
                items //= self.rng.choice((2, 3, 10))
        return calls

    def key(self):
        return self.rng.choice(self.made or ["none"])

    def anything(self):
        rng = self.rng
        item = "i:%d" % rng.randrange(1 << 30)
        few = lambda: [str(rng.randrange(1 << 30)) for _ in range(
            rng.choice((1, 10, 300)))]
        return rng.choice((
            lambda: ("BF.ADD", self.key(), item),
            lambda: ("BF.ADD", item, item),
            lambda: ("BF.MADD", self.key(), *few()),
            lambda: ("BF.INSERT", item, "ITEMS", *few()),
            lambda: ("BF.RESERVE", item, "0.001", rng.choice((1, 1000, 10**6))),
            lambda: ("BF.EXISTS", self.key(), item),
            lambda: ("BF.MEXISTS", self.key(), *few()),
            lambda: ("BF.INFO", self.key()),
            lambda: ("INFO",), lambda: ("INFO", "everything"),
            lambda: ("PING", "x" * rng.choice((1, 100_000))),
            lambda: ("KEYS", "*"), lambda: ("SCAN", "0", "COUNT", "1000"),
            lambda: ("CLIENT", "LIST"), lambda: ("CLIENT", "INFO"),
            lambda: ("CLIENT", "SETNAME", item.replace(":", "-")),
            lambda: ("CLIENT", "KILL", "ID", "1000000"),
            lambda: ("SLOWLOG", "GET", "-1"), lambda: ("LATENCY", "LATEST"),
            lambda: ("CONFIG", "GET", "*"),
            lambda: ("CONFIG", "SET", "slowlog-log-slower-than",
                     rng.choice(("0", "10000"))),
            lambda: ("CONFIG", "SET", "bf.bloom-fp-rate", "0.0%d1" %
                     rng.randrange(9)),
            lambda: ("CONFIG", "SET", "appendonly", rng.choice(("yes", "no"))),
            lambda: ("CONFIG", "REWRITE"), lambda: ("CONFIG", "RESETSTAT"),
            lambda: ("BGREWRITEAOF",), lambda: ("BGSAVE",),
            lambda: ("SUBSCRIBE", *few()), lambda: ("PSUBSCRIBE", item + "*"),
            lambda: ("UNSUBSCRIBE",), lambda: ("PUBLISH", item, "x" * 1000),
            lambda: ("CLIENT", "TRACKING", "ON"),
            lambda: ("CLIENT", "TRACKING", "OFF"),
            lambda: ("HELLO", rng.choice("23"), "SETNAME", "n"),
            lambda: ("MULTI",), lambda: ("EXEC",), lambda: ("DISCARD",),
            lambda: ("WATCH", self.key(), item),
            lambda: ("EXPIRE", self.key(), "1000"), lambda: ("RANDOMKEY",),
            lambda: ("RENAME", self.key(), self.key()),
            lambda: ("COPY", self.key(), item), lambda: ("DUMP", self.key()),
            lambda: ("DEL", item), lambda: ("COMMAND", "DOCS"),
            lambda: ("MEMORY", "USAGE", self.key()), lambda: ("MEMORY", "STATS"),
            lambda: ("ACL", "LOG"), lambda: ("AUTH", "default", "wrong"),
            lambda: ("REPLICAOF", "127.0.0.1", "1"),
            lambda: ("REPLICAOF", "NO", "ONE"), lambda: ("ROLE",),
            lambda: ("DBSIZE",), lambda: ("TIME",), lambda: ("RESET",),
        ))()

    def anything_much(self, commands):
        for _ in range(commands):
            name = self.rng.choice(("one", "two", "three", "new"))
            words = self.anything()
            if words[0] in ("SUBSCRIBE", "PSUBSCRIBE", "UNSUBSCRIBE"):
                name = "subscriber"
            elif words[:2] == ("CLIENT", "TRACKING"):
                name = "tracked"
            try:
                self.call(*words, name=name)
            except resp.Malformed:
                raise AssertionError("a broken reply to %r" % (words,))
            if name in ("new", "subscriber"):
                self.drop(name)

    def idle(self):
        deadline = time.monotonic() + IDLE_SECONDS
        while time.monotonic() < deadline:
            time.sleep(0.1)
            self.alive("idle")

    def until(self, want, *args):
        """Repeats a call while a temporary condition prevents it."""
        def tried():
            reply = self.call(*args, name="last")
            return (reply,) if want(reply) else None
        try:
            return servers.wait_until(tried, 20, "%r" % (args,), 0.02)[0]
        except AssertionError as error:
            raise AssertionError("%r answers %r; its log:\n%s" % (
                args, self.call(*args, name="last"),
                self.server.log().decode()[-3000:])) from error

    def works(self):
        """Checks what must work while memory is short, for a new client."""
        for name in list(self.conns):
            self.drop(name)
        self.until(lambda r: r == b"PONG", "PING")
        self.until(lambda r: r == b"OK", "REPLICAOF", "NO", "ONE")
        assert b"used_memory:" in self.until(
            lambda r: isinstance(r, bytes), "INFO")
        key = self.call("RANDOMKEY", name="last")
        if isinstance(key, bytes):
            assert self.until(lambda r: r in (0, 1), "DEL", key) == 1
        self.until(lambda r: r == b"OK", "SAVE")


def shut_down(full):
    """Sends SHUTDOWN, which may have to wait for a running rewrite."""
    server = full.server
    deadline = time.monotonic() + 20 * servers.time_factor()
    while server.child.poll() is None and time.monotonic() < deadline:
        try:
            with server.conn() as conn:
                conn.call("SHUTDOWN")
        except (resp.Closed, OSError):
            pass
        time.sleep(0.02)
    code = server.wait_exit()
    server.assert_healthy()
    assert code == 0, "exit status %d; the log:\n%s" % (
        code, server.log().decode("utf-8", "replace")[-4000:])
    server.stopped = True
    server.remove()


def options_for(rng):
    out = ["--maxmemory-policy", rng.choice(("noeviction", "allkeys-random"))]
    if rng.random() < 0.3:
        out += ["--requirepass", ""]
    return out + ["--appendonly", rng.choice(("yes", "no")),
                  "--appendfsync", rng.choice(("always", "everysec", "no"))]


def play(full, rng, commands):
    full.anything_much(rng.randrange(20))
    calls = full.fill()
    full.anything_much(commands)
    full.idle()
    return calls


def random_round(seed, commands=60):
    """Runs one server until memory has ended, and then to its end."""
    rng = random.Random(seed)
    faults = rng.choice((None, None, "every", "for good"))
    with tempfile.TemporaryDirectory() as folder:
        env, preload = None, None
        if faults is not None:
            preload = shim.Shim(folder, folder)
            env = preload.env()
        with Full(rng, *options_for(rng), env=env) as full:
            replica = attach(full, rng)
            extra = int(MIB * rng.choice((rng.uniform(20, 90),
                                          rng.uniform(20, 90),
                                          rng.uniform(90, 330))))
            full.limit(extra)
            if preload is not None:
                preload.arm(0, "fail", rng.choice((
                    ["alloc"], ["alloc"], ["map"], ["thread", "alloc"],
                    shim.MEMORY_CALLS)), ["none"],
                    nth=rng.choice((1, 2, 3, 10, 100, 1000)),
                    error=errno.ENOMEM, flags=shim.EVERY if faults == "every"
                    else shim.FOR_GOOD)
            calls = play(full, rng, commands)
            full.works()
            shut_down(full)
            if replica is not None:
                replica.stop()
            fired = preload.rule(0).fired if preload is not None else 0
            if preload is not None:
                preload.close()
            return collections.Counter(
                rounds=1, reserves=calls, kept=len(full.made), cuts=full.cuts,
                oom=sum(full.errors.values()), faults=fired,
                with_replica=replica is not None)


def attach(full, rng):
    """Adds a replica in some rounds."""
    if rng.random() > 0.25:
        return None
    replica = servers.Server("--replicaof",
                             "127.0.0.1 %d" % full.server.port, threads=1,
                             ready=False)
    replica.wait_ready()
    return replica


def test_a_full_server_goes_on():
    """Runs everything that once ended a server, one after the other."""
    with Full(random.Random(1), "--appendonly", "no") as full:
        full.limit(60 * MIB)
        full.fill()
        full.idle()  # ticks that publish figures
        assert b"memory has ended" in full.server.log()
        assert b"mem_reserve_used" in full.call("INFO")
        assert b"tracking_total_prefixes" in full.call("INFO")
        for words in (("KEYS", "*"), ("CLIENT", "LIST"), ("SLOWLOG", "GET")):
            assert not isinstance(full.call(*words), resp.Error), words
        assert full.call("CONFIG", "SET", "appendonly", "yes") == b"OK"
        servers.wait_until(
            lambda: b"journal_state:on" in full.call("INFO", "persistence"),
            20, "the journal is on", 0.05)
        full.until(lambda r: isinstance(r, bytes), "BGREWRITEAOF")
        assert full.call("BF.ADD", full.made[0], "x") == 1
        assert full.call("CONFIG", "REWRITE") == b"OK"
        assert oom(full.call("BF.RESERVE", "another", "0.01", "1"))
        assert full.call("EXISTS", "another") == 0
        keys = full.call("DBSIZE")
        full.works()
        assert full.call("DBSIZE") == keys - 1
        shut_down(full)


class Cgroup:
    """Makes a cgroup with this much memory, of version 1 or 2."""

    PLACES = (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
              ("/sys/fs/cgroup", "memory.max"))

    def __init__(self, limit_bytes):
        for top, limit in self.PLACES:
            self.path = "%s/bloomery-test-%d" % (top, os.getpid())
            try:
                os.mkdir(self.path)
            except OSError:
                continue
            try:
                self.write(limit, limit_bytes)
                return
            except OSError:
                os.rmdir(self.path)
        pytest.skip("no cgroup with a limit of memory can be made here")

    def write(self, name, value):
        with open(os.path.join(self.path, name), "w") as file:
            file.write(str(value))

    def starter(self, folder):
        """Returns a program that starts the server in the cgroup."""
        path = os.path.join(folder, "starter")
        with open(path, "w") as file:
            file.write("#!/bin/sh\necho $$ > %s/cgroup.procs\nexec %s \"$@\"\n"
                       % (self.path, servers.server_binary()))
        os.chmod(path, 0o755)
        return path

    def remove(self):
        def removed():
            try:
                os.rmdir(self.path)
            except OSError:
                return False
            return True
        servers.wait_until(removed, 10, "%s is empty" % self.path)


def touch(full, sizes):
    """Adds random items until nearly every page of the filters is resident."""
    for key, items in sizes:
        pages = items * 2 // 4096 + 1
        for _ in range(-(-4 * pages // 500)):
            full.call("BF.MADD", key, *[str(full.rng.randrange(1 << 60))
                                        for _ in range(500)])


def test_a_cgroup_is_filled_to_its_limit(monkeypatch, tmp_path):
    """The server uses all memory that it may reserve, and the kernel kills no
    process."""
    cgroup = Cgroup(96 * MIB)
    try:
        monkeypatch.setenv("BLOOMERY_SERVER", cgroup.starter(tmp_path))
        # No world has the allocator ask for huge pages here: they are not counted.
        with Full(random.Random(3), "--appendonly", "yes",
                  env={"MALLOC_CONF": ""}) as full:
            sizes, items = [], 100_000_000
            while items >= 1:
                if full.reserve(items) == b"OK":
                    sizes.append((full.made[-1], items))
                else:
                    items //= 3
            touch(full, sizes)
            rss = full.server.rss()
            assert rss > 64 * MIB  # some of it does not count for the cgroup
            full.until(lambda r: isinstance(r, bytes), "BGREWRITEAOF")
            full.idle()
            assert full.call("BF.EXISTS", sizes[0][0], "x") in (0, 1)
            full.works()
            shut_down(full)
    finally:
        cgroup.remove()


def test_no_password_is_accepted_when_memory_is_short():
    """Digests that were never computed would be equal. From the fifth wrong
    password on, passwords wait."""
    with tempfile.TemporaryDirectory() as folder:
        preload = shim.Shim(folder, folder)
        with Full(random.Random(2), "--requirepass", "right",
                  "--auth-failure-delay", 20, env=preload.env()) as full:
            preload.arm(0, "fail", ["alloc"], ["none"], flags=shim.FOR_GOOD,
                        error=errno.ENOMEM)
            refused = 0
            for number in range(12):
                assert full.call("AUTH", "right", name="a") == b"OK"
                wrong = full.call("AUTH", "wrong%d" % number, name="b")
                if wrong is not None:  # the server cuts after several
                    assert wrong.args[0].startswith("WRONGPASS"), wrong
                    refused += 1
            assert refused > 6
            assert preload.rule(0).fired > 12
            preload.disarm(0)
            assert full.call("SHUTDOWN", "NOSAVE", name="a") is None
            assert full.server.wait_exit() == 0
            full.server.remove()
        preload.close()


def test_random_commands_without_memory_never_end_the_server():
    total = collections.Counter()
    for number, seed in enumerate(crash.seeds(ROUNDS)):
        try:
            total += random_round(seed)
        except BaseException:
            print("round", number, "seed", seed)
            raise
    print(dict(total))
    assert total["oom"] > total["rounds"]
