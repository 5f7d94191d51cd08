# SPDX-License-Identifier: BSD-3-Clause
#
# Servers that follow each other, proxies between them, and Sentinels that watch
# them. No step sleeps for a fixed time: each waits for a condition.

import os
import random
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from lib import servers, shim
from lib import tls as certificates
from lib.servers import Process, Server, wait_until

SMALL = ("--threads", 2, "--repl-diskless-sync-delay", 0,
         "--enable-debug-command", "yes")


def node(*options, **kwargs):
    """Starts a server with the options of these tests."""
    return Node(*SMALL, *options, **kwargs)


class Faults:
    """A process that can be stopped, killed and restarted on its port and data."""

    frozen = False

    def crash(self):
        """Kills the process with kill -9."""
        self.child.kill()
        self.child.wait()
        self.frozen = False

    def restart(self, *more, wait=True):
        """more: options for this start and all later ones."""
        self.argv += [str(m) for m in more]
        with open(self.log_path, "ab") as log:
            self.child = subprocess.Popen(
                self.argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=self.folder, env=self.env, preexec_fn=self.prepare)
        self.pid = self.child.pid
        if wait:
            self.wait_ready()

    def runs(self):
        return self.child.poll() is None and not self.frozen

    def freeze(self):
        """Stops it, and waits until each thread has stopped."""
        def stopped():
            threads = Path("/proc/%d/task" % self.child.pid)
            try:
                return all(stat.read_text().rpartition(")")[2].split()[0] == "T"
                           for stat in threads.glob("*/stat"))
            except FileNotFoundError:  # one has just ended
                return False

        self.child.send_signal(signal.SIGSTOP)
        self.frozen = True
        wait_until(stopped, what="each thread has stopped")

    def thaw(self):
        self.child.send_signal(signal.SIGCONT)
        self.frozen = False


class Node(Faults, Server):
    """password: the one that its clients must give."""

    def __init__(self, *options, password=None, **kwargs):
        self.password = password
        if password is not None:
            options += ("--requirepass", password, "--masterauth", password)
        super().__init__(*options, **kwargs)

    def conn(self, proto=2, **kwargs):
        kwargs.setdefault("password", self.password)
        return super().conn(proto, **kwargs)

    def stop(self, how=signal.SIGTERM):
        if self.frozen:
            self.thaw()
        if self.child.poll() == -signal.SIGKILL and not self.stopped:
            self.stopped = True     # crash() was its end
            self.assert_healthy()
            self.remove()
        super().stop(how)


class Guest(Node):
    """A server of a world, whose clients come by the world's door. extra: its
    certificates, or its file of users."""

    def __init__(self, *options, world, extra, **kwargs):
        self.world, self.extra = world, extra
        if world.door == "password":
            kwargs["password"] = "pw"
        elif world.door == "user":
            self.login = ("somebody", "pw")
            options += ("--aclfile", extra, "--masteruser", "somebody",
                        "--masterauth", "pw")
        elif world.door == "tls":
            self.tls_port = servers.free_port()
            options += extra.options(self.tls_port)
        super().__init__(*options, world=world, **kwargs)

    def conn(self, proto=2, **kwargs):
        if self.world.door == "tls":
            return certificates.Conn(self.tls_port, self.extra.context(), proto=proto,
                                     **kwargs)
        made = super().conn(proto, **kwargs)
        if self.login:
            assert made.call("AUTH", *self.login) == b"OK"
        return made


class Group:
    """The servers and proxies of one test: the fixture `group`."""

    world = extra = None

    def __init__(self):
        self.nodes, self.proxies, self.shims = [], [], []

    def enter(self, world, folder):
        """Starts all further servers in this world."""
        self.world = world
        print(world)
        if world.door == "tls":
            self.extra = certificates.Files(folder)
        elif world.door == "user":
            self.extra = folder / "users.acl"
            self.extra.write_text("user default off\n"
                                  "user somebody on >pw ~* &* +@all\n")

    def node(self, *options, **kwargs):
        options = ("--loglevel", "notice", *options)
        if self.world is None:
            made = node(*options, **kwargs)
        else:
            made = Guest(*SMALL[2:], *options, world=self.world, extra=self.extra,
                         **kwargs)
        self.nodes.append(made)
        return made

    def shimmed(self, folder, *options, **kwargs):
        """A server whose calls can be made to fail, by server.shim."""
        folder = folder / ("shim%d" % len(self.shims))
        os.makedirs(folder / "data")
        self.shims.append(shim.Shim(str(folder), folder / "data"))
        server = self.node("--dir", folder / "data", *options,
                           env=self.shims[-1].env(), **kwargs)
        server.shim = self.shims[-1]
        return server

    def proxy(self, target):
        self.proxies.append(Proxy(target.address))
        return self.proxies[-1]

    def pair(self, *options, folder=None):
        """A primary, a replica behind a proxy, and the proxy. With a folder the
        primary is shimmed."""
        primary = self.shimmed(folder, *options) if folder else self.node(*options)
        replica = self.node(*options)
        proxy = self.proxy(primary)
        follow(replica, proxy)
        # The primary publishes its figures a moment later.
        wait_until(lambda: info(primary, "stats")["sync_full"] == "1", 30,
                   "the primary counts the synchronization")
        return primary, replica, proxy

    def end(self, show_logs):
        for proxy in self.proxies:
            proxy.close()
        for made in self.shims:
            made.disarm(0)
        servers.stop_all(self.nodes, show_logs)
        for made in self.shims:
            made.close()


def info(server, section="replication"):
    """Returns INFO as a dictionary of strings."""
    with server.conn() as conn:
        return parse_info(conn.call("INFO", section))


def parse_info(text):
    lines = (line.split(":", 1) for line in text.decode().splitlines()
             if ":" in line and not line.startswith("#"))
    return dict(lines)


def digest(server):
    with server.conn() as conn:
        return conn.call("DEBUG", "DIGEST")


def follow(replica, primary, wait=True):
    """Sends REPLICAOF; primary: a server or an address."""
    host, port = getattr(primary, "address", primary)
    with replica.conn() as conn:
        reply = conn.call("REPLICAOF", host, str(port))
        assert reply.startswith(b"OK"), reply
    if wait:
        wait_until(lambda: link_is_up(replica), 30, "the replica follows")


def lead(server):
    with server.conn() as conn:
        assert conn.call("REPLICAOF", "NO", "ONE") == b"OK"


def link_is_up(replica):
    return info(replica).get("master_link_status") == "up"


def offset(server):
    got = info(server)
    return int(got["slave_repl_offset" if got["role"] == "slave"
                   else "master_repl_offset"])


def wait_even(primary, *replicas, seconds=30):
    """Waits until all replicas have reached the primary's offset, and compares
    their data. It compares again if a key expires meanwhile."""
    for attempt in range(10):
        position = offset(primary)
        for replica in replicas:
            wait_until(lambda r=replica: link_is_up(r) and
                       offset(r) >= position, seconds,
                       "the replica is at %d" % position)
        want = digest(primary)
        same = [digest(replica) == want for replica in replicas]
        if all(same):
            return
        time.sleep(0.01 * attempt)
    raise AssertionError("the data differs at %d: %s" % (position, same))


class Proxy:
    """A TCP proxy with threads, on its own port. It counts the bytes towards the
    client (from primary to replica), and can cut, stall or flip a bit there. With
    `up = False` it refuses connections."""

    def __init__(self, target, port=0):
        self.target = target
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", port))
        self.listener.listen(64)
        self.address = self.listener.getsockname()
        self.lock = threading.Lock()
        self.pairs = set()
        self.up = True
        self.flow = threading.Event()
        self.flow.set()
        self.sent = 0            # towards the client, all connections
        self.cut_at = None       # of `sent`
        self.flip_at = None      # likewise: one bit of that byte
        self.hold_on = None      # what has this in it is kept back for now
        self.refuses = None      # towards the server: ends a connection that says it
        self.last = False        # the next connection ends the others, and is the last
        self.connections = 0
        self.closed = False
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def accept(self):
        while not self.closed:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if not self.up or self.closed:
                client.close()
                continue
            try:
                server = socket.create_connection(self.target, 5)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            pair = (client, server)
            with self.lock:
                before = list(self.pairs) if self.last else []
                self.up, self.last = self.up and not self.last, False
                self.pairs.add(pair)
                self.connections += 1
            for other in before:
                self.close_pair(other)
            for source, sink, back in ((client, server, False),
                                       (server, client, True)):
                threading.Thread(target=self.pump, daemon=True,
                                 args=(pair, source, sink, back)).start()

    def pump(self, pair, source, sink, back):
        try:
            while True:
                data = source.recv(65536)
                if not data:
                    break
                self.flow.wait()
                if back:
                    if self.hold_on and self.hold_on in data:
                        self.flow.clear()
                        self.flow.wait()
                    data, cut = self.meddle(data)
                    sink.sendall(data)
                    if cut:
                        break
                elif self.refuses and self.refuses in data:
                    break
                else:
                    sink.sendall(data)
        except OSError:
            pass
        self.close_pair(pair)

    def meddle(self, data):
        """Returns the bytes to forward, and whether to cut the link after them."""
        with self.lock:
            begin, end = self.sent, self.sent + len(data)
            if self.flip_at is not None and begin <= self.flip_at < end:
                changed = bytearray(data)
                changed[self.flip_at - begin] ^= 1 << random.randrange(8)
                data, self.flip_at = bytes(changed), None
            if self.cut_at is not None and self.cut_at < end:
                data, self.cut_at = data[:max(0, self.cut_at - begin)], None
                self.sent += len(data)
                return data, True
            self.sent = end
            return data, False

    def close_pair(self, pair):
        with self.lock:
            self.pairs.discard(pair)
        for sock in pair:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            sock.close()

    def cut(self):
        """Closes all connections at once."""
        with self.lock:
            pairs = list(self.pairs)
        for pair in pairs:
            self.close_pair(pair)

    def close(self):
        self.closed = True
        self.flow.set()
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        self.cut()
        self.thread.join()


class Sentinel(Process):
    """Debian's Sentinel (the oracle's binary) with its own configuration. It pings
    once a second, so down-after must be longer than that. Otherwise a Sentinel
    that has just learned of a new primary considers it down before the first
    ping."""

    def __init__(self, primary, name="bloom", quorum=2, down_after_ms=2000,
                 failover_timeout_ms=3000, extra="", periods=()):
        """extra: lines of its configuration. periods: shorter ones, set with
        SENTINEL DEBUG, for tests that have less time."""
        folder = tempfile.mkdtemp(prefix="bloomery-sentinel-")
        port = servers.free_port()
        path = os.path.join(folder, "sentinel.conf")
        host, primary_port = primary.address
        with open(path, "w") as file:
            file.write(
                "port %d\nbind 127.0.0.1\ndir %s\n"
                "sentinel monitor %s %s %d %d\n"
                "sentinel down-after-milliseconds %s %d\n"
                "sentinel failover-timeout %s %d\n"
                "sentinel parallel-syncs %s 2\n%s"
                % (port, folder, name, host, primary_port, quorum, name,
                   down_after_ms, name, failover_timeout_ms, name, extra))
        super().__init__([servers.REDIS / "redis-server", path, "--sentinel"],
                         port, folder, servers.redis_environment())
        self.name = name
        try:
            self.wait_ready()
            if periods:
                assert self.ask("DEBUG", *periods) == b"OK"
        except BaseException:
            self.kill()
            raise

    def ask(self, *words):
        with self.conn() as conn:
            return conn.call("SENTINEL", *words)

    def primary(self):
        """Returns (host, port) of the primary that it names."""
        got = self.ask("GET-MASTER-ADDR-BY-NAME", self.name)
        return (got[0].decode(), int(got[1])) if got else None

    def facts(self):
        flat = self.ask("MASTER", self.name)
        return {flat[i].decode(): flat[i + 1].decode()
                for i in range(0, len(flat), 2)}

    def stop(self):
        self.kill()
        self.remove()


class Watch:
    """Three Sentinels for one primary and its replicas."""

    def __init__(self, primary, replicas, **kwargs):
        self.sentinels = [Sentinel(primary, **kwargs) for _ in range(3)]
        wait_until(lambda: self.knows(len(replicas)), 30,
                   "the Sentinels know each other and the replicas")

    def knows(self, replicas):
        facts = [s.facts() for s in self.sentinels]
        return all(int(f["num-other-sentinels"]) == 2 and
                   int(f["num-slaves"]) == replicas for f in facts)

    def primary(self):
        """Returns the primary that all of them name, or None."""
        named = {s.primary() for s in self.sentinels}
        return named.pop() if len(named) == 1 else None

    def wait_other(self, old, seconds=30):
        """Waits until all of them name a primary other than `old`; returns it."""
        return wait_until(
            lambda: (lambda now: now if now not in (None, old) else None)(
                self.primary()), seconds, "a new primary")

    def stop(self):
        for sentinel in self.sentinels:
            sentinel.stop()
