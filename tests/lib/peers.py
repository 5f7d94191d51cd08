# SPDX-License-Identifier: BSD-3-Clause
#
# Fake primaries and replicas: they follow the protocol as far as a test wants,
# and then break it.

import socket
import threading
import time

from lib import resp, servers

RUN = "7" * 40
HISTORY = "ab" * 20
KEY = "0123456789abcdef"


class FakePrimary:
    """Listens, and calls `act(peer)` for each server that connects. `asked` has the
    words of PSYNC, or the last words received."""

    def __init__(self, act):
        self.act = act
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = self.listener.getsockname()
        self.asked = []
        self.dialled = 0
        self.failures = []
        self.closed = False
        self.socks = set()
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def accept(self):
        while not self.closed:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.dialled += 1
            self.socks.add(sock)
            threading.Thread(target=self.serve, args=(sock,),
                             daemon=True).start()

    def serve(self, sock):
        sock.settimeout(20 * servers.time_factor())
        try:
            self.act(Peer(sock, self))
        except (OSError, resp.Closed):
            pass  # it hung up, as it should on most of this
        except BaseException as problem:  # noqa: B902 - told at the end
            self.failures.append(repr(problem))
        sock.close()
        self.socks.discard(sock)

    def close(self):
        self.closed = True
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        for sock in list(self.socks):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.thread.join()
        assert not self.failures, self.failures


class Peer:
    """The side of a fake primary on one connection."""

    def __init__(self, sock, primary):
        self.sock, self.primary = sock, primary
        self.data = b""

    def send(self, data):
        self.sock.sendall(resp.as_bytes(data))

    def words(self):
        """Reads the next command of the replica."""
        while True:
            try:
                end = resp.reply_end(self.data)
            except resp.Incomplete:
                more = self.sock.recv(4096)
                if not more:
                    raise resp.Closed(self.data) from None
                self.data += more
                continue
            raw, self.data = self.data[:end], self.data[end:]
            return resp.decode(raw)

    def hello(self, line=None):
        """Reads REPLCONF bloomery, sends the hello."""
        said = self.words()
        assert said[:2] == [b"REPLCONF", b"bloomery"], said
        self.send(line or "+BLOOMERY 1 %s -\r\n" % RUN)

    def tell(self, *lines):
        """Answers each question about hash secrets with the next line."""
        for line in lines:
            said = self.words()
            assert said[:2] == [b"REPLCONF", b"hash-secret"], said
            self.send(line)

    def greet(self, secrets=("+-\r\n",)):
        """Sends the hello, answers about hash secrets, reads the port."""
        self.hello()
        self.tell(*secrets)
        said = self.words()
        assert said[:2] == [b"REPLCONF", b"listening-port"], said
        self.send("+OK\r\n")

    def shake(self, answer=None, secrets=("+-\r\n",)):
        """Does the whole handshake up to PSYNC, and answers PSYNC."""
        self.greet(secrets)
        self.primary.asked = self.words()
        if answer is not None:
            self.send(answer)

    def go_on(self):
        """Begins the stream at the replica's own position."""
        self.shake()
        self.send("+CONTINUE %s %s\r\n" % (HISTORY, KEY))

    def wait_end(self):
        """Waits until the replica closes the connection."""
        while self.sock.recv(65536):
            pass


def full(position=1000, sequence=10, size=5000):
    return "+FULLRESYNC %s %d %d %s %d\r\n" % (HISTORY, position, sequence,
                                               KEY, size)


class FakeReplica:
    """A connection to a primary that introduces itself as a Bloomery."""

    def __init__(self, address, run=RUN, port=1, rcvbuf=None, greet=True):
        self.sock = socket.socket()
        if rcvbuf:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        self.sock.settimeout(20 * servers.time_factor())
        self.sock.connect(address)
        if greet:
            self.say("REPLCONF", "bloomery", 1, "run", run)
            assert self.line().startswith(b"+BLOOMERY ")
            self.say("REPLCONF", "listening-port", port)
            assert self.line() == b"+OK"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def say(self, *words):
        self.sock.sendall(resp.command(*words))

    def line(self):
        """Reads a line byte by byte, so that the following bytes stay unread."""
        data = b""
        while not data.endswith(b"\n"):
            byte = self.sock.recv(1)
            if not byte:
                raise resp.Closed(data)
            data += byte
        return data.strip()

    def ask(self, *words):
        """Sends PSYNC; returns the answer without the pings before it."""
        self.say("PSYNC", *(words or ("?", "-1")))
        answer = b"+PING"
        while answer in (b"+PING", b""):
            answer = self.line()
        return answer

    def drain(self, seconds=20):
        """Reads to the end; returns the number of bytes."""
        deadline = time.monotonic() + seconds * servers.time_factor()
        count = 0
        while time.monotonic() < deadline:
            try:
                data = self.sock.recv(1 << 20)
            except ConnectionResetError:
                return count
            if not data:
                return count
            count += len(data)
        raise AssertionError("it is not closed, after %d bytes" % count)

    def close(self):
        self.sock.close()
