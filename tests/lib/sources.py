# SPDX-License-Identifier: BSD-3-Clause
#
# A fake Redis as the source of bloomery-load server --follow: it sends an RDB and
# then the commands that a test feeds it, keeps the stream for replicas that come
# back, and records what they acknowledge.

import socket
import threading
import time

from lib import resp, servers

MARK = b"m" * 40


class FakeSource:
    """rdb: the bytes of its RDB. form: "size" as from a disk, "eof" without one.
    resumes: whether a replica may continue after its link broke. breaks: of the
    next RDBs, after how many bytes the link breaks. silent_at: where it stops in a
    full copy and keeps the link, from the end if negative. module: the version
    of its RedisBloom, whose arguments are module_args."""

    def __init__(self, rdb, form="size", offset=1000, resumes=True, info=True,
                 piece=1 << 16):
        self.rdb, self.form, self.resumes, self.info = rdb, form, resumes, info
        self.piece = piece
        self.history = b"a" * 40
        self.begin = offset
        self.log = b""
        self.acked = 0
        self.psyncs = []
        self.breaks = []
        self.silent_at = None
        self.module, self.module_args = None, []
        self.lock = threading.RLock()
        self.replicas = []
        self.socks = []
        self.failures = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    @property
    def offset(self):
        with self.lock:
            return self.begin + len(self.log)

    def feed(self, *words):
        self.feed_raw(resp.command(*words))

    def feed_raw(self, data):
        with self.lock:
            self.log += data
            for sock in list(self.replicas):
                try:
                    sock.sendall(data)
                except OSError:
                    self.replicas.remove(sock)

    def cut(self):
        """Breaks the links of all replicas."""
        with self.lock:
            for sock in self.replicas:
                sock.shutdown(socket.SHUT_RDWR)
            self.replicas = []

    def close(self):
        self.listener.close()
        for sock in self.socks:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        assert not self.failures, self.failures

    # ---- connections ---------------------------------------------------------

    def accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.socks.append(sock)
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        data = b""
        try:
            while True:
                try:
                    end = resp.reply_end(data)
                except resp.Incomplete:
                    more = sock.recv(65536)
                    if not more:
                        return
                    data += more
                    continue
                words, data = resp.decode(data[:end]), data[end:]
                self.answer(sock, [word.upper() for word in words[:2]], words)
        except OSError:
            return
        except BaseException as problem:  # noqa: B902 - told at the end
            self.failures.append(repr(problem))

    def answer(self, sock, head, words):
        if head[0] == b"PSYNC":
            self.synchronize(sock, words)
        elif head == [b"REPLCONF", b"ACK"]:
            self.acked = int(words[2])
        elif head[0] == b"PING":
            sock.sendall(b"+PONG\r\n")
        elif head == [b"INFO", b"MODULES"] and self.module:
            text = b"# Modules\r\nmodule:name=bf,ver=%d,api=1\r\n" % self.module
            sock.sendall(b"$%d\r\n%s\r\n" % (len(text), text))
        elif head == [b"MODULE", b"LIST"] and self.module:
            args = resp.command(*self.module_args)
            sock.sendall(b"*1\r\n*8\r\n" + resp.command(
                "name", "bf", "ver", self.module, "path", "/redisbloom.so",
                "args")[4:] + args)
        elif head[0] == b"INFO" and self.info:
            text = b"# Replication\r\nrole:master\r\nmaster_repl_offset:%d\r\n" \
                b"repl_backlog_size:1\r\n" % self.offset
            sock.sendall(b"$%d\r\n%s\r\n" % (len(text), text))
        elif head[0] == b"REPLCONF":
            sock.sendall(b"+OK\r\n")
        else:
            sock.sendall(b"-NOPERM no\r\n")

    def synchronize(self, sock, words):
        self.psyncs.append(words[1:])
        with self.lock:
            if words[1] == self.history and self.resumes:
                sock.sendall(b"+CONTINUE\r\n" + self.log[int(words[2]) - 1 -
                                                         self.begin:])
                self.replicas.append(sock)
                return
            line = b"\n+FULLRESYNC %s %d\r\n\n\n" % (self.history, self.offset)
            at = len(self.log)
        head, tail = b"$%d\r\n" % len(self.rdb), b""
        if self.form == "eof":
            head, tail = b"$EOF:" + MARK + b"\r\n", MARK
        data = head + self.rdb + tail
        if self.silent_at is not None:
            sock.sendall((line + data)[:self.silent_at])
            return
        sock.sendall(line)
        if self.breaks:
            sock.sendall(data[:self.breaks.pop(0)])
            sock.shutdown(socket.SHUT_RDWR)
            return
        for start in range(0, len(data), self.piece):
            sock.sendall(data[start:start + self.piece])
        with self.lock:
            sock.sendall(self.log[at:])
            self.replicas.append(sock)


def wait_for(condition, what):
    servers.wait_until(condition, 30, what)


def stop(child, seconds=30):
    """Sends SIGTERM; returns (exit status, output, messages)."""
    child.terminate()
    out, err = child.communicate(timeout=seconds * servers.time_factor())
    assert not servers.REPORTS.search(err), err.decode()
    return child.returncode, out, err


def now_ms():
    return int(time.time() * 1000)
