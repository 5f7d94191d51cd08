# SPDX-License-Identifier: BSD-3-Clause
#
# CONFIG REWRITE: the changes of CONFIG SET survive a restart, in rewritten.conf in the
# data directory. The server never writes to the configuration file. A crash meanwhile
# leaves either the old options or the new ones.

import errno
import os
import re
import shutil
import signal
import stat
import tempfile

import pytest

from lib import resp, servers, shim

CONF = """# kept
[network]
timeout = 3
# maxclients = 10000

[bf]
bloom-capacity: 500
"""


class Home:
    """A folder with a configuration file and a data directory."""

    def __init__(self, conf=CONF):
        self.folder = tempfile.mkdtemp(prefix="bloomery-rewrite-")
        self.etc = os.path.join(self.folder, "etc")
        self.data = os.path.join(self.folder, "data")
        os.mkdir(self.etc)
        os.mkdir(self.data)
        self.file = os.path.join(self.etc, "bloomery.conf")
        self.beside = os.path.join(self.data, "rewritten.conf")
        self.shim = None
        if conf is not None:
            with open(self.file, "w") as file:
                file.write(conf)
        self.named = conf is not None
        self.server = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.server is not None:
            self.server.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, *options):
        port = servers.free_port()
        argv = [servers.server_binary()] + [self.file] * self.named + [
            "--port", port, "--bind", "127.0.0.1", "--dir", self.data,
            "--threads", 2, *options]
        env = dict(os.environ)
        env.pop("NOTIFY_SOCKET", None)
        env.pop("WATCHDOG_USEC", None)
        if self.shim is not None:
            env.update(self.shim.env())
        self.server = servers.Process(argv, port, self.folder, env)
        self.server.wait_ready()
        return self.server

    def stop(self, how=signal.SIGTERM):
        self.server.child.send_signal(how)
        code = self.server.wait_exit()
        assert code == (0 if how == signal.SIGTERM else -how), \
            self.server.log().decode()
        assert not servers.REPORTS.search(self.server.log())

    def restart(self, *options):
        self.stop()
        return self.start(*options)

    def text(self, path=None):
        with open(path or self.file) as file:
            return file.read()


def values(server):
    with server.conn() as conn:
        got = conn.call("CONFIG", "GET", "*")
    return dict(zip(got[::2], got[1::2]))


def call(server, *words):
    with server.conn() as conn:
        return conn.call(*words)


def test_changes_of_config_set_survive_and_the_file_stays_unchanged():
    with Home() as home:
        server = home.start()
        assert call(server, "CONFIG", "SET", "timeout", 9, "maxclients", 77,
                    "bf.bloom-capacity", 600, "requirepass", "s ; # s",
                    "save", "55 4 3 2") == b"OK"
        with server.conn(password="s ; # s") as conn:
            assert conn.call("CONFIG", "REWRITE") == b"OK"
        assert b"wrote the changes of CONFIG SET" in server.log()
        text = home.text(home.beside)
        assert text[text.index("["):] == (
            "[network]\ntimeout = 9\nmaxclients = 77\n\n"
            "[security]\nrequirepass = s ; # s\n\n"
            "[persistence]\nsave = 55 4 3 2\n\n"
            "[bf]\nbloom-capacity = 600\n")
        assert stat.S_IMODE(os.stat(home.beside).st_mode) == 0o600
        assert home.text() == CONF
        assert os.listdir(home.etc) == ["bloomery.conf"]
        again = home.restart()
        with again.conn(password="s ; # s") as conn:
            assert conn.call("CONFIG", "GET", "maxclients")[1] == b"77"
            assert conn.call("CONFIG", "GET", "save")[1] == b"55 4 3 2"
            # A second time changes nothing.
            assert conn.call("CONFIG", "REWRITE") == b"OK"
            assert home.text(home.beside) == text
            # An option that the file sets to the same value needs no line.
            assert conn.call("CONFIG", "SET", "timeout", 3) == b"OK"
            assert conn.call("CONFIG", "REWRITE") == b"OK"
        assert home.text(home.beside) == text.replace("timeout = 9\n", "")
        home.stop()


def overrides(server):
    """Returns the option, its value and the value without rewritten.conf, as
    logged."""
    found = re.findall(rb"rewritten.conf overrides the configuration.*?"
                       rb" option=(\S+) value=\"(.*?)\" instead_of=\"(.*?)\"",
                       server.log())
    return {option.decode(): (value.decode(), given.decode())
            for option, value, given in found}


def test_the_log_names_each_option_that_overrides_the_file():
    with Home() as home:
        server = home.start()
        assert overrides(server) == {}
        assert call(server, "CONFIG", "SET", "timeout", 9, "maxclients", 77,
                    "requirepass", "sesame") == b"OK"
        with server.conn(password="sesame") as conn:
            assert conn.call("CONFIG", "REWRITE") == b"OK"
        # An edit of other options is in force, an edit of this one is not.
        with open(home.file, "w") as file:
            file.write(CONF.replace("timeout = 3", "timeout = 4")
                       .replace("500", "501"))
        server = home.restart("--maxclients", 66)
        with server.conn(password="sesame") as conn:
            for name, value in (("timeout", b"9"), ("maxclients", b"66"),
                                ("bf.bloom-capacity", b"501")):
                assert conn.call("CONFIG", "GET", name)[1] == value
        assert overrides(server) == {"timeout": ("9", "4"),
                                     "requirepass": ("********", "")}
        assert b"sesame" not in server.log()
        # A reload logs it again, with the value of the file at that time.
        with open(home.file, "a") as file:
            file.write("[network]\ntimeout = 5\n")
        server.child.send_signal(signal.SIGHUP)
        servers.wait_until(lambda: overrides(server)["timeout"] == ("9", "5"))
        home.stop()


def test_an_edit_that_was_not_loaded_yet_is_not_overridden():
    with Home() as home:
        server = home.start()
        with open(home.file, "w") as file:
            file.write(CONF.replace("timeout = 3", "timeout = 4"))
        assert call(server, "CONFIG", "SET", "maxclients", 77) == b"OK"
        assert call(server, "CONFIG", "REWRITE") == b"OK"
        got = values(home.restart())
        assert (got[b"timeout"], got[b"maxclients"]) == (b"4", b"77")
        home.stop()


def other(name, value):
    """Returns values to try for an option, by its type."""
    if value in (b"yes", b"no"):
        return [b"no" if value == b"yes" else b"yes"]
    if re.fullmatch(rb"\d+", value):
        number = int(value)
        return [b"%d" % n for n in (number + 1, number - 1, number // 2,
                                    number * 2)]
    if name == b"client-output-buffer-limit":
        return [b"normal 99999999 9999999 9 slave 99999999 9999999 9 "
                b"pubsub 99999999 9999999 9", b"normal 99999999 9999999 9"]
    return [b"0.25", b"always", b"verbose", b"redis", b"KEA", b"77 7",
            b"allkeys-lru", b"50 99", b"12", b"x"]


@pytest.mark.parametrize("named", [True, False], ids=["file", "no file"])
def test_every_option_survives_set_rewrite_and_restart(named):
    with Home(CONF if named else None) as home:
        server = home.start()
        changed = set()
        for name, value in sorted(values(server).items()):
            # These would end or delay the connection that sets the others.
            if name in (b"requirepass", b"maxmemory-clients"):
                continue
            for new in other(name, value):
                got = call(server, "CONFIG", "SET", name, new)
                if got == b"OK" and values(server)[name] != value:
                    changed.add(name)
                    break
        assert len(changed) > 25, changed
        before = values(server)
        assert call(server, "CONFIG", "REWRITE") == b"OK"
        after = values(home.restart())
        for each in (before, after):
            each.pop(b"port")
        assert after == before
        home.stop()


def test_without_a_file_it_is_the_same():
    with Home(None) as home:
        server = home.start("--maxclients", 66)
        assert call(server, "CONFIG", "SET", "timeout", 8) == b"OK"
        assert call(server, "CONFIG", "REWRITE") == b"OK"
        # The command line overrides the file, and is not written.
        server = home.restart("--timeout", 4)
        got = values(server)
        assert (got[b"timeout"], got[b"maxclients"]) == (b"4", b"10000")
        server = home.restart()
        assert values(server)[b"timeout"] == b"8"
        # A reload keeps it.
        assert call(server, "CONFIG", "SET", "timeout", 1) == b"OK"
        server.child.send_signal(signal.SIGHUP)
        servers.wait_until(lambda: values(server)[b"timeout"] == b"8")
        home.stop()


@pytest.mark.parametrize("what", ["create", "write", "sync", "rename"])
@pytest.mark.parametrize("error", [errno.EROFS, errno.ENOSPC],
                         ids=["EROFS", "ENOSPC"])
def test_where_the_file_cannot_be_written_the_client_gets_an_error(what, error):
    with Home() as home:
        home.shim = shim.Shim(home.folder, home.data)
        server = home.start("--save=", "--appendonly=no")
        assert call(server, "CONFIG", "SET", "timeout", 8) == b"OK"
        home.shim.arm(0, "fail", [what], error=error, flags=shim.FOR_GOOD)
        reply = call(server, "CONFIG", "REWRITE")
        assert isinstance(reply, resp.Error)
        assert re.fullmatch("ERR Rewriting config file: .*/rewritten.conf: " +
                            os.strerror(error), reply.args[0])
        home.shim.disarm(0)
        assert call(server, "CONFIG", "REWRITE") == b"OK"
        assert "timeout = 8\n" in home.text(home.beside)
        assert home.text() == CONF
        home.stop()


def test_a_bad_file_in_the_directory_is_refused_at_the_start():
    with Home() as home:
        with open(home.beside, "w") as file:
            file.write("[network]\nnope = 1\n")
        with pytest.raises(RuntimeError) as info:
            home.start()
        assert "rewritten.conf:2: unknown option 'nope'" in str(info.value)


STEPS = ["create", "write", "sync", "rename"]


def test_a_crash_leaves_the_old_options_or_the_new_ones():
    """Kills before and after each call of the rewrite, with and without an
    existing rewritten.conf."""
    for begins in (False, True):
        for what in STEPS:
            for action in ("kill-before", "kill-after"):
                for nth in (1, 2):
                    crash_once(what, action, begins, nth)


def crash_once(what, action, begins, nth):
    with Home() as home:
        if begins:
            with open(home.beside, "w") as file:
                file.write("[network]\ntimeout = 4\nmaxclients = 44\n")
        home.shim = shim.Shim(home.folder, home.data)
        server = home.start("--save=", "--appendonly=no")
        old = values(server)
        assert call(server, "CONFIG", "SET", "timeout", 8, "maxclients", 99,
                    "tcp-keepalive", 5) == b"OK"
        new = values(server)
        home.shim.arm(0, action, [what], nth=nth)
        with server.conn() as conn:
            try:
                assert conn.call("CONFIG", "REWRITE") == b"OK"
                done = True
            except (resp.Closed, OSError):
                done = False
        if home.shim.rule(0).fired:
            assert server.wait_exit() == -signal.SIGKILL
        else:
            assert done
            home.stop()
        home.shim = None
        got = values(home.start("--save=", "--appendonly=no"))
        for each in (old, new, got):
            each.pop(b"port", None)
        assert got in (old, new), (what, action, begins, nth)
        if done:
            assert got == new
        home.stop()


def test_many_clients_rewrite_at_once_and_in_transactions():
    with Home() as home:
        server = home.start()
        conns = [server.conn() for _ in range(8)]
        for round in range(20):
            for at, conn in enumerate(conns):
                conn.send(resp.command("CONFIG", "SET", "timeout",
                                       10 + round) +
                          (resp.command("MULTI") if at % 2 else b"") +
                          resp.command("CONFIG", "REWRITE") +
                          (resp.command("EXEC") if at % 2 else b"") +
                          resp.command("ECHO", "done"))
            for at, conn in enumerate(conns):
                want = [b"OK", b"OK", b"QUEUED", [b"OK"], b"done"] if at % 2 \
                    else [b"OK", b"OK", b"done"]
                assert [conn.read() for _ in want] == want
        assert "timeout = 29\n" in home.text(home.beside)
        for conn in conns:
            conn.close()
        home.stop()
