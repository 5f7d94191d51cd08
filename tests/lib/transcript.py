# SPDX-License-Identifier: BSD-3-Clause
#
# Transcripts: conversations with the server as readable text. They run against a
# live server in RESP2 and RESP3. With `@oracle` they also run against redis-server
# 7.0.15, with the same bytes. tests/command/README.md describes the format.
#
#   python3 -m lib.transcript --record FILE.t      (from the folder tests/)
#
# adds the oracle's reply to every step that has no expectation yet.

import re
import sys
import time
from pathlib import Path

from lib import resp, servers

STEP = re.compile(r"(>!|>|@raw!|@raw|@read!|@read|@send!|@send)(?: (.*))?$",
                  re.DOTALL)
EXPECT = re.compile(r"(2<|3<|<|~) ?(.*)$")
WORD = re.compile(r'"((?:[^"\\]|\\.)*)"|((?:[^\s"\\]|\\.)+)')


class Mismatch(AssertionError):
    pass


def words(text):
    """Splits a line into words, as a shell does. \\xNN and the usual escapes work
    inside and outside of quotes."""
    out, pos = [], 0
    while True:
        while pos < len(text) and text[pos] == " ":
            pos += 1
        if pos == len(text):
            return out
        match = WORD.match(text, pos)
        if not match:
            raise ValueError("bad quoting: %r" % text)
        inner = match.group(1)
        out.append(resp.unquote(match.group(2) if inner is None else inner))
        pos = match.end()


class Step:
    def __init__(self, where, kind, text, conn):
        self.where = where  # path and line number
        self.kind = kind
        self.text = text
        self.conn = conn
        self.expected = {2: [], 3: []}
        self.regex = None

    def request(self):
        if self.reads_only():
            return b""
        if self.kind.startswith("@raw"):
            return words(self.text)[0]
        return resp.command(*words(self.text))

    def reads_only(self):
        return self.kind.startswith("@read")

    def sends_only(self):
        return self.kind.startswith("@send")

    def name(self):
        if self.kind.startswith("@raw") or self.reads_only():
            return b""
        return words(self.text)[0].upper()

    def ours_only(self):
        return self.kind.endswith("!") or self.name().startswith(b"BF.")

    def expectation(self, proto):
        """Returns the reply as a pattern of bytes, or None; `:?` is any integer."""
        if not self.expected[proto]:
            return None
        out = b""
        for token in " | ".join(self.expected[proto]).split(" | "):
            token = token.strip()
            out += rb":-?\d+\r\n" if token == ":?" else \
                re.escape(resp.encode_token(token, proto))
        return re.compile(out, re.DOTALL)

    def volatile(self):
        return any(":?" in line for line in self.expected[2] + self.expected[3])


# The reply to EXEC of a transaction with one PING, after WATCH.
WATCHED = {"@unchanged": "*1 | +PONG", "@changed": "nullarray"}


class Transcript:
    def __init__(self, path):
        self.path = Path(path)
        self.oracle = False
        self.options = []
        self.nodes = []  # of a made-up cluster, as keyword arguments of neighbour.node
        self.neighbour = {}
        self.protos = (2, 3)
        self.steps = []
        self.conn = "a"
        self._parse(self.path, {})

    def _parse(self, path, values):
        """Appends the steps of a file, with $NAME replaced by its value."""
        step = None
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            line = re.sub(r"\$([A-Za-z]+)", lambda name: values[name.group(1)],
                          line) if values else line
            where = (path, number)
            expect = EXPECT.match(line)
            if expect:
                self._expect(step, where, *expect.groups())
                continue
            step = self._step(where, line)

    def _fail(self, where, why):
        raise ValueError("%s:%d: %s" % (*where, why))

    def _append(self, where, kind, text):
        step = Step(where, kind, text, self.conn)
        self.steps.append(step)
        return step

    def _step(self, where, line):
        match = STEP.match(line)
        if match:
            return self._append(where, match.group(1), match.group(2) or "")
        word, _, rest = line.partition(" ")
        if word == "@oracle":
            self.oracle = True
        elif word == "@server":
            self.options += rest.split()
        elif word == "@node":
            ident, port, flags, primary, *slots = rest.split()
            self.nodes.append({
                "ident": ident * 40, "port": int(port), "flags": flags,
                "primary": primary if primary == "-" else primary * 40,
                "slots": " ".join(slots)})
        elif word == "@neighbour":
            name, value = rest.split()
            self.neighbour[name] = value
        elif word == "@proto":
            self.protos = tuple(int(p) for p in rest.split())
        elif word == "@on":
            self.conn = rest.strip()
        elif word == "@include":
            name, *pairs = rest.split()
            self._parse(where[0].parent / name,
                        dict(pair.split("=", 1) for pair in pairs))
        elif word in WATCHED:
            for text, reply in (("MULTI", "+OK"), ("PING", "+QUEUED"),
                                ("EXEC", WATCHED[word])):
                self._expect(self._append(where, ">", text), where, "<", reply)
        elif word in ("@key", "@closed", "@sleep_ms"):
            self._append(where, word, rest)
        else:
            self._fail(where, "unknown directive: %r" % line)
        return None

    def _expect(self, step, where, kind, text):
        if step is None:
            self._fail(where, "an expected reply before the first command")
        if kind == "~":
            step.regex = text
            return
        for proto in (2, 3) if kind == "<" else (int(kind[0]),):
            step.expected[proto].append(text.strip().lstrip("| "))


class Side:
    """The connections to one server."""

    def __init__(self, process, proto):
        self.process = process
        self.proto = proto
        self.conns = {}

    def conn(self, name):
        if name not in self.conns:
            self.conns[name] = self.process.conn(self.proto)
        return self.conns[name]

    def talk(self, step):
        conn = self.conn(step.conn)
        if not step.reads_only():
            conn.send(step.request())
        if step.sends_only():
            return b""
        try:
            return conn.read_raw()
        except resp.Closed as closed:
            return b"(closed)" + closed.got

    def closed(self, name):
        conn = self.conn(name)
        conn.timeout = 3 * servers.time_factor()
        return conn.read_to_close() == b""

    def close(self):
        for conn in self.conns.values():
            conn.close()


def shown(raw):
    try:
        return resp.render(raw)
    except (resp.Incomplete, resp.Malformed):
        return repr(raw)


def place(step):
    return "%s:%d" % (step.where[0].name, step.where[1])


def explain(step, proto, what, want, got):
    raise Mismatch(
        "%s (RESP%d) %s\n  sent  %s\n  bytes %r\n  want  %s\n  got   %s\n"
        "  got bytes %r" % (place(step), proto, what, step.text,
                            step.request()[:300], want, shown(got), got[:2000]))


def run_directive(step, ours, oracle):
    if step.kind == "@key":
        for key in words(step.text):
            # Delete the key first: SET removes a time to live, but BF.ADD keeps it.
            ours.conn(step.conn).call("DEL", key)
            ours.conn(step.conn).call("BF.ADD", key, "x")
            if oracle:
                oracle.conn(step.conn).call("SET", key, "x")
    elif step.kind == "@sleep_ms":
        # Only for behaviour that depends on time, such as expiry.
        time.sleep(int(step.text) / 1000)
    elif step.kind == "@closed":
        for side in (ours, oracle):
            if side and not side.closed(step.conn):
                raise Mismatch("%s: the server sent more before it closed the "
                               "connection" % place(step))


def check_step(step, proto, ours, oracle):
    got = ours.talk(step)
    other = None
    if oracle and not step.ours_only():
        other = oracle.talk(step)
    want = step.expectation(proto)
    if step.sends_only():
        return
    if step.regex is not None:
        for side, raw in (("server", got), ("oracle", other)):
            if raw is not None and not re.fullmatch(step.regex, shown(raw)):
                explain(step, proto, "%s does not match" % side,
                        step.regex, raw)
        return
    if want is None and other is None:
        if oracle is None and not step.ours_only():
            return
        raise ValueError("%s: no expected reply" % place(step))
    if want is not None and not want.fullmatch(got):
        explain(step, proto, "differs from the transcript",
                " | ".join(step.expected[proto]), got)
    if other is not None and step.volatile():
        if not want.fullmatch(other):
            explain(step, proto, "redis-server 7.0.15 differs from the transcript",
                    " | ".join(step.expected[proto]), other)
    elif other is not None and got != other:
        explain(step, proto, "differs from redis-server 7.0.15",
                shown(other), got)


def run(transcript, proto, server, oracle_process):
    """Runs all steps; raises a Mismatch that lists every step that differs."""
    ours = Side(server, proto)
    oracle = Side(oracle_process, proto) if oracle_process else None
    failures = []
    try:
        for step in transcript.steps:
            try:
                if step.kind in ("@key", "@closed", "@sleep_ms"):
                    run_directive(step, ours, oracle)
                else:
                    check_step(step, proto, ours, oracle)
            except (Mismatch, resp.Malformed) as mismatch:
                failures.append(str(mismatch))
            except (TimeoutError, resp.Closed, OSError) as error:
                failures.append("%s (RESP%d) %s: %s\n  the steps after it did not run"
                                % (place(step), proto, step.text, error))
                break
    finally:
        ours.close()
        if oracle:
            oracle.close()
    if failures:
        raise Mismatch("%d of %d steps failed:\n%s" % (
            len(failures), len(transcript.steps), "\n".join(failures)))


# ---- recording -------------------------------------------------------------

def common_text(raw2, raw3):
    """Returns one text that encodes to both replies, or None."""
    text = resp.render(raw3)
    null = "nullarray" if raw2.startswith(b"*-1") else "null"
    for candidate in (text, re.sub(r"(^|(?<= ))_($|(?= \|))", null, text)):
        if (resp.encode(candidate, 2), resp.encode(candidate, 3)) == (raw2, raw3):
            return candidate
    return None


def wrap(prefix, text, width=96):
    lines, line = [], ""
    for token in text.split(" | "):
        if line and len(line) + len(token) > width:
            lines.append(prefix + " " + line)
            line = ""
        line = token if not line else line + " | " + token
    return lines + [prefix + " " + line]


def record_steps(transcript, side, answers):
    for step in transcript.steps:
        if step.kind == "@key":
            for key in words(step.text):
                side.conn(step.conn).call("SET", key, "x")
        elif step.kind == "@sleep_ms":
            time.sleep(int(step.text) / 1000)
        elif step.kind != "@closed" and not step.ours_only():
            answers[step.where, side.proto] = side.talk(step)
    side.close()


def record(path):
    transcript = Transcript(path)
    protos = transcript.protos
    answers = {}
    for proto in protos:
        oracle = servers.Oracle()
        try:
            record_steps(transcript, Side(oracle, proto), answers)
        finally:
            oracle.stop()
    steps = {step.where: step for step in transcript.steps}
    out = []
    for number, line in enumerate(Path(path).read_text().splitlines(), 1):
        out.append(line)
        where = (transcript.path, number)
        step = steps.get(where)
        if (step is None or step.regex is not None or
                (where, protos[0]) not in answers):
            continue
        if step.expected[2] or step.expected[3]:
            continue
        raw2, raw3 = (answers[where, protos[0]], answers[where, protos[-1]])
        if raw2.startswith(b"(closed)"):
            out.append("# oracle closed: %r" % raw2)
            continue
        text = (common_text(raw2, raw3) if len(protos) > 1
                else resp.render(raw2))
        if text is not None:
            out += wrap("<", text)
        else:
            out += wrap("2<", resp.render(raw2)) + wrap("3<", resp.render(raw3))
    Path(path).write_text("\n".join(out) + "\n")


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] != "--record":
        sys.exit("usage: python3 -m lib.transcript --record FILE.t ...")
    for name in sys.argv[2:]:
        record(name)
