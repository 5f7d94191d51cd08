# SPDX-License-Identifier: BSD-3-Clause
#
# A raw RESP client: it sends exactly the given bytes and returns exactly the bytes
# of one reply, RESP2 or RESP3. It also decodes a reply to Python values, and to the
# one-line text form of the transcripts. Every read has a deadline.

import re
import socket
import time

AGGREGATES = b"*%~>"
LINES = b"+-:_,#("


class Closed(Exception):
    """The peer closed the connection; `got` is what came before."""

    def __init__(self, got=b""):
        super().__init__("connection closed, got %r" % (got,))
        self.got = got


class Malformed(Exception):
    """Bytes that are not a RESP reply."""


class Error(Exception):
    """An error reply, as a value."""

    def __eq__(self, other):
        return isinstance(other, Error) and self.args == other.args

    def __hash__(self):
        return hash(self.args)


def as_bytes(arg):
    if isinstance(arg, bytes):
        return arg
    return str(arg).encode()


def command(*args):
    """Encodes the request `args` as a RESP array of bulk strings."""
    parts = [b"*%d\r\n" % len(args)]
    for arg in args:
        data = as_bytes(arg)
        parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
    return b"".join(parts)


class Incomplete(Exception):
    pass


def _line(data, pos):
    end = data.find(b"\r\n", pos)
    if end < 0:
        raise Incomplete
    return bytes(data[pos:end]), end + 2


def reply_end(data, pos=0, depth=0):
    """Returns the offset after the reply that starts at `pos`."""
    if depth > 32:
        raise Malformed("nested deeper than 32")
    if pos >= len(data):
        raise Incomplete
    kind = bytes(data[pos:pos + 1])
    text, pos = _line(data, pos + 1)
    if kind in (b"$", b"=", b"!"):
        length = _number(text)
        if length == -1 and kind == b"$":
            return pos
        if length < 0:
            raise Malformed("length %d" % length)
        if len(data) < pos + length + 2:
            raise Incomplete
        if data[pos + length:pos + length + 2] != b"\r\n":
            raise Malformed("no CRLF behind a bulk string")
        return pos + length + 2
    if kind in AGGREGATES_LIST:
        count = _number(text)
        if count == -1 and kind == b"*":
            return pos
        if count < 0:
            raise Malformed("count %d" % count)
        for _ in range(count * 2 if kind == b"%" else count):
            pos = reply_end(data, pos, depth + 1)
        return pos
    if kind in LINES_LIST:
        check_line(kind, text)
        return pos
    raise Malformed("type byte %r" % (kind,))


AGGREGATES_LIST = [bytes([c]) for c in AGGREGATES]
LINES_LIST = [bytes([c]) for c in LINES]
LINE_FORMS = {
    b"+": rb"[^\r\n]*", b"-": rb"[^\r\n]+", b":": rb"[+-]?\d+", b"_": rb"",
    b",": rb"-?(inf|nan|\d+(\.\d+)?([eE][+-]?\d+)?)", b"#": rb"[tf]",
    b"(": rb"[+-]?\d+",
}


def check_line(kind, text):
    if not re.fullmatch(LINE_FORMS[kind], text):
        raise Malformed("%r after %r" % (text, kind))


def _number(text):
    if not re.fullmatch(rb"-?\d+", text):
        raise Malformed("length %r" % (text,))
    return int(text)


def decode(data, pos=0):
    """Decodes one reply to a Python value; errors become Error instances."""
    return _decode(data, pos)[0]


def _decode(data, pos):
    kind = bytes(data[pos:pos + 1])
    text, pos = _line(data, pos + 1)
    if kind in (b"$", b"="):
        length = _number(text)
        if length < 0:
            return None, pos
        value = bytes(data[pos:pos + length])
        return value[4:] if kind == b"=" else value, pos + length + 2
    if kind in AGGREGATES_LIST:
        count = _number(text)
        if count < 0:
            return None, pos
        items = []
        for _ in range(count * 2 if kind == b"%" else count):
            value, pos = _decode(data, pos)
            items.append(value)
        if kind == b"%":
            return dict(zip(items[::2], items[1::2])), pos
        return items, pos
    value = {
        b"+": lambda: text, b"-": lambda: Error(text.decode("utf-8", "replace")),
        b":": lambda: int(text), b"_": lambda: None, b",": lambda: float(text),
        b"#": lambda: text == b"t", b"(": lambda: int(text),
    }[kind]()
    return value, pos


class Conn:
    """One connection. `proto` 3 sends HELLO 3 first and drops its reply."""

    def __init__(self, address, proto=2, timeout=None, password=None):
        from lib import servers
        self.timeout = timeout or 10 * servers.time_factor()
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.sock = socket.socket(family, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(address)
        if family == socket.AF_INET:
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = self.wrap(self.sock)
        self.data = bytearray()
        if password is not None:
            assert self.call("AUTH", password) == b"OK"
        if proto == 3:
            raw = self.raw("HELLO", "3")
            if not raw.startswith(b"%"):
                raise Malformed("HELLO 3 answered %r" % (raw,))

    def wrap(self, sock):
        """What speaks through the connected socket: lib/tls.py has another."""
        return sock

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    def send(self, data):
        self.sock.settimeout(self.timeout)  # reading leaves a shorter one
        self.sock.sendall(data)

    def is_cut_after(self, data, seconds=0.1):
        """Sends DATA; whether the peer has closed the connection by then."""
        try:
            self.send(data)
            self.sock.settimeout(seconds)
            return self.sock.recv(1) == b""
        except socket.timeout:
            return False
        except OSError:
            return True

    def read_raw(self):
        """Reads exactly one reply and returns its bytes."""
        deadline = time.monotonic() + self.timeout
        looked_at, enough = -1, 1
        while True:
            have = len(self.data)
            if have >= enough:
                try:
                    end = reply_end(self.data)
                    reply = bytes(self.data[:end])
                    del self.data[:end]
                    return reply
                except Incomplete:
                    # Parse a large reply again only when much more has
                    # arrived, or when nothing arrives for a moment.
                    looked_at = have
                    enough = have + max(1, min(have // 4, 1 << 20))
            left = max(0.001, deadline - time.monotonic())
            self.sock.settimeout(0.02 if have > looked_at >= 0 else left)
            try:
                self._receive()
            except (TimeoutError, socket.timeout):
                if have > looked_at >= 0:
                    enough = have
                    continue
                raise TimeoutError("no reply in %.0f s, got %r" % (
                    self.timeout, bytes(self.data[:200]))) from None

    def _receive(self):
        try:
            chunk = self.sock.recv(1 << 18)
        except ConnectionResetError:
            chunk = b""
        if not chunk:
            raise Closed(bytes(self.data))
        self.data += chunk

    def raw(self, *args):
        self.send(command(*args))
        return self.read_raw()

    def call(self, *args):
        """Sends a command and returns its decoded reply."""
        return decode(self.raw(*args))

    def read(self):
        return decode(self.read_raw())

    def read_to_close(self):
        """Reads until the peer closes; raises TimeoutError if it does not."""
        deadline = time.monotonic() + self.timeout
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("not closed, got %r" % bytes(self.data[:200]))
            self.sock.settimeout(left)
            try:
                self._receive()
            except Closed as closed:
                return closed.got

    def pipeline(self, commands):
        """Sends all commands in one write; returns the decoded replies."""
        self.send(b"".join(command(*c) for c in commands))
        return [self.read() for _ in commands]


# ---- text form -------------------------------------------------------------

SHORT = {"\\": "\\\\", '"': '\\"', "\r": "\\r", "\n": "\\n", "\t": "\\t"}


def quote(data):
    out = []
    for byte in data:
        char = chr(byte)
        if char in SHORT:
            out.append(SHORT[char])
        elif 32 <= byte < 127:
            out.append(char)
        else:
            out.append("\\x%02x" % byte)
    return '"%s"' % "".join(out)


ESCAPE = re.compile(r'\\(x[0-9a-fA-F]{2}|.)', re.DOTALL)
LETTERS = {"n": b"\n", "r": b"\r", "t": b"\t"}


def unquote(text):
    """Decodes the inside of a quoted string to bytes."""
    out, last = b"", 0
    for match in ESCAPE.finditer(text):
        out += text[last:match.start()].encode()
        code = match.group(1)
        if code[0] == "x" and len(code) == 3:
            out += bytes([int(code[1:], 16)])
        else:
            out += LETTERS.get(code, code.encode())
        last = match.end()
    return out + text[last:].encode()


def render(raw, pos=0):
    """Converts a raw reply to text: one token per element, joined by ` | `."""
    return " | ".join(_tokens(raw))


def _tokens(raw):
    pos = 0
    while pos < len(raw):
        kind = raw[pos:pos + 1].decode("latin-1")
        text, after = _line(raw, pos + 1)
        shown = quote(text)[1:-1].replace('\\"', '"')
        if kind == "$" and text != b"-1":
            length = _number(text)
            yield quote(raw[after:after + length])
            pos = after + length + 2
        elif kind == "=":
            length = _number(text)
            yield "=" + quote(raw[after:after + length])
            pos = after + length + 2
        else:
            # A blank at the end must survive editors.
            yield kind + re.sub(" $", r"\\x20", shown)
            pos = after


def encode_token(token, proto):
    """Encodes one token to bytes. RESP3 kinds become their RESP2 form."""
    kind, text = token[:1], token[1:]
    if kind == '"':
        data = unquote(token[1:-1])
        return b"$%d\r\n%s\r\n" % (len(data), data)
    if token == "null":
        return b"$-1\r\n" if proto == 2 else b"_\r\n"
    if token == "nullarray":
        return b"*-1\r\n" if proto == 2 else b"_\r\n"
    if kind == "=":
        data = unquote(text[1:-1])
        if proto == 2:
            data = data[4:]
            return b"$%d\r\n%s\r\n" % (len(data), data)
        return b"=%d\r\n%s\r\n" % (len(data), data)
    if proto == 2:
        if kind == "%":
            return b"*%d\r\n" % (int(text) * 2)
        if kind in "~>":
            return b"*%s\r\n" % text.encode()
        if kind == ",":
            return b"$%d\r\n%s\r\n" % (len(text), text.encode())
        if kind == "#":
            return b":1\r\n" if text == "t" else b":0\r\n"
    if kind not in "+-:$*%~>_,#(":
        raise ValueError("not a reply token: %r" % token)
    return kind.encode() + unquote(text) + b"\r\n"


def encode(text, proto):
    """Encodes a reply in text form to bytes."""
    return b"".join(encode_token(t.strip(), proto) for t in text.split(" | "))
