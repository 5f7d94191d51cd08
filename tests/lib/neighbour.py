# SPDX-License-Identifier: BSD-3-Clause
#
# A cluster node that a test makes up: it answers what a server in sidecar mode asks
# its neighbour, from fields that the test sets. It knows no slots of its own; it
# says what the test wants it to say.

import socket
import threading

from lib import resp, servers
from lib.servers import wait_until

# Other nodes have no servers that could be asked who has the data of a slot.
EMPTY = ("--sidecar-missing-slot", "empty")
A, B, C = "a" * 40, "b" * 40, "c" * 40
OFFSET = 1000


def node(ident, port, flags="master", primary="-", epoch=1, slots="",
         host="127.0.0.1", link="connected", hostname=""):
    """One line of CLUSTER NODES; port: of the daemon."""
    name = "," + hostname if hostname else ""
    port -= OFFSET
    bus = port + 10000 if port < 55000 else port - 10000
    return "%s %s:%d@%d%s %s %s 0 0 %d %s %s" % (
        ident, host, port, bus, name, flags, primary, epoch, link, slots)


class Neighbour:
    """nodes: lines of CLUSTER NODES; state: ok or fail; config: what CONFIG GET
    knows; password, user: what AUTH takes; silent: it reads and does not answer."""

    def __init__(self, path=None):
        self.nodes = [node(A, OFFSET + 1, "myself,master", slots="0-16383")]
        self.state = "ok"
        self.myid = A
        self.config = {"cluster-node-timeout": "4000"}
        self.shard = None
        self.user, self.password = "default", None
        self.silent = False
        self.error = None  # the answer to CLUSTER NODES
        self.raw = None  # the answer to EXEC
        self.polls = 0
        self.asked = []  # commands of the last connection
        self.lock = threading.Lock()
        self.cond = threading.Condition(self.lock)
        self.conns = []
        self.listener = None
        self.path = path
        self.port = servers.free_port()
        self.listen()

    @property
    def address(self):
        return self.path or "127.0.0.1:%d" % self.port

    def listen(self):
        if self.path:
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(self.path)
        else:
            self.listener = socket.socket()
            self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.listener.bind(("127.0.0.1", self.port))
        self.listener.listen(8)
        threading.Thread(target=self.accept, args=(self.listener,),
                         daemon=True).start()

    def accept(self, listener):
        while True:
            try:
                conn, _ = listener.accept()
            except OSError:
                return
            with self.lock:
                self.conns.append(conn)
                self.asked = []
            threading.Thread(target=self.serve, args=(conn,), daemon=True).start()

    def close(self):
        """Refuses connections and closes those that are open."""
        # shutdown ends an accept that is under way.
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        with self.lock:
            conns, self.conns = self.conns, []
        for conn in conns:
            try:
                conn.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            conn.close()

    def say(self, **fields):
        """Changes what the next looks see, all at once."""
        with self.cond:
            for name, value in fields.items():
                assert hasattr(self, name), name
                setattr(self, name, value)
            self.cond.notify_all()

    def serve(self, conn):
        data = b""
        queue = None  # of MULTI
        state = {"in": self.password is None}
        try:
            while True:
                got = conn.recv(65536)
                if not got:
                    return
                data += got
                while True:
                    try:
                        end = resp.reply_end(data)
                    except resp.Incomplete:
                        break
                    words = [w.decode() for w in resp.decode(data[:end])]
                    data = data[end:]
                    with self.cond:
                        self.cond.wait_for(lambda: not self.silent)
                        self.asked.append(words)
                        answer, queue = self.answer(words, queue, state)
                    conn.sendall(answer)
        except OSError:
            pass

    def answer(self, words, queue, state):
        name = words[0].upper()
        if name == "AUTH":
            user = words[1] if len(words) == 3 else "default"
            if (user, words[-1]) != (self.user, self.password):
                return b"-WRONGPASS invalid username-password pair or user is " \
                    b"disabled.\r\n", queue
            state["in"] = True
            return b"+OK\r\n", queue
        if not state["in"]:
            return b"-NOAUTH Authentication required.\r\n", queue
        if name == "MULTI":
            return b"+OK\r\n", []
        if name == "EXEC":
            self.polls += 1
            if self.raw is not None:
                return self.raw, None
            if queue is None or b"" in queue:
                return b"-EXECABORT Transaction discarded because of previous " \
                    b"errors.\r\n", None
            return b"*%d\r\n" % len(queue) + b"".join(queue), None
        reply = self.one(words)
        if queue is None:
            return reply, queue
        if reply.startswith(b"-"):
            return reply, queue + [b""]
        return b"+QUEUED\r\n", queue + [reply]

    def one(self, words):
        if words[0] == "CONFIG":
            value = self.config.get(words[2])
            return b"*0\r\n" if value is None else resp.command(words[2], value)
        if words[1] == "NODES" and self.error is not None:
            return b"-%s\r\n" % self.error.encode()
        if words[1] == "MYSHARDID" and self.shard is None:
            return b"-ERR unknown subcommand 'MYSHARDID'. Try CLUSTER HELP.\r\n"
        text = {
            "NODES": "".join(line + "\n" for line in self.nodes),
            "INFO": "cluster_state:%s\r\ncluster_current_epoch:7\r\n"
                    "cluster_my_epoch:3\r\ncluster_stats_messages_sent:%d\r\n"
                    % (self.state, self.polls),
            "MYID": self.myid,
            "MYSHARDID": self.shard,
        }[words[1]].encode()
        return b"$%d\r\n%s\r\n" % (len(text), text)

    def wait_looks(self, count=2):
        """Waits until the server has looked `count` more times."""
        target = self.polls + count
        wait_until(lambda: self.polls >= target,
                           what="%d looks at the neighbour" % count)


def figures(server):
    """INFO cluster as a dict of texts."""
    with server.conn() as conn:
        text = conn.call("INFO", "cluster").decode()
    return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)


def wait_lease(server, has=True):
    """Waits until the server has a lease, or has none."""
    wait_until(
        lambda: (figures(server)["cluster_lease_left_ms"] != "0") == has,
        what="a lease" if has else "the end of the lease")


def wait_served(server, count):
    """Waits until so many slots are served, and none of those that were lost."""
    def so_many():
        seen = figures(server)
        return (seen.get("cluster_slots_served"),
                seen.get("cluster_slots_leaving")) == (str(count), "0")

    wait_until(so_many, seconds=20, what="%d slots" % count)
