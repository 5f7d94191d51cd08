# SPDX-License-Identifier: BSD-3-Clause
#
# The Python package (python/) beside a live server. `make all` leaves it in the build
# folder, as it would lie in site-packages.

import gc
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from lib import servers
from lib.servers import wait_until

sys.path.insert(0, str(Path(servers.server_binary()).parent / "python"))
bloomery = pytest.importorskip("bloomery")


def url(server, database=0):
    return "redis://127.0.0.1:%d/%d" % (server.port, database)


@pytest.fixture
def filled(server):
    """A server with the filter k, which has a, é and the bytes 00 ff."""
    with server.conn() as conn:
        conn.call("BF.RESERVE", "k", "0.000001", 1000)
        conn.call("BF.MADD", "k", "a", "é", b"\x00\xff")
    return server


def test_a_copy_answers_and_follows(filled):
    with bloomery.LocalFilter(url(filled), "k") as seen, filled.conn() as conn:
        assert "a" in seen and "é" in seen and b"\x00\xff" in seen
        assert "b" not in seen and seen.contains("b") is False
        assert seen.contains_many(["a", "b", "é", b"\x00\xff"]) == [True, False, True, True]
        assert seen.contains_many(iter([])) == []
        conn.call("BF.ADD", "k", "b")
        wait_until(lambda: "b" in seen, 20, "b is in the copy")
        status = seen.status()
        assert (status.state, status.error_code, status.items) == ("fresh", 0, 4)
        assert status.server == "127.0.0.1:%d" % filled.port and status.loads == 1
        conn.call("DEL", "k")
        wait_until(lambda: seen.contains("zz") is None, 20, "absent is unknown")
        with pytest.raises(bloomery.Stale):
            "zz" in seen
    assert seen.contains("a") is None
    seen.close()


def test_a_key_that_is_missing(server):
    with bloomery.LocalFilter(url(server), b"k") as seen:
        assert seen.status().state == "missing" and seen.contains("a") is None
    with bloomery.LocalFilter(url(server), "k", missing="absent") as seen:
        assert "a" not in seen
        with server.conn() as conn:
            conn.call("BF.ADD", "k", "a")
        wait_until(lambda: seen.contains("a"), 20, "the new filter is loaded")


def test_bad_calls_are_refused(filled):
    for wrong in ({"missing": "x"}, {"timeout": 0}, {"max_stale_ms": -1},
                  {"refresh_ms": 2 ** 32}, {"max_bytes": -1}):
        with pytest.raises(ValueError):
            bloomery.LocalFilter(url(filled), "k", **wrong)
    with pytest.raises(TypeError):
        bloomery.LocalFilter(url(filled), 5)
    with pytest.raises(bloomery.Error, match="(?i)url|scheme"):
        bloomery.LocalFilter("http://127.0.0.1/", "k")
    with pytest.raises(bloomery.Error):
        bloomery.LocalFilter(url(filled), "k", max_bytes=100)
    with pytest.raises(bloomery.Error):
        bloomery.LocalFilter("redis://127.0.0.1:1/0", "k", timeout=0.3)
    with bloomery.LocalFilter(url(filled), "k") as seen:
        for call in (lambda: seen.contains(5), lambda: seen.contains_many(["a", None]),
                     lambda: 5 in seen, lambda: seen.contains_many(5)):
            with pytest.raises(TypeError):
                call()
        with pytest.raises(UnicodeEncodeError):
            seen.contains("\ud800")
        with pytest.raises(ValueError):
            seen.__init__(url(filled), "k")
    assert bloomery._local.Filter.__new__(bloomery._local.Filter) is not None


def test_a_password_is_in_no_text(filled, caplog):
    with filled.conn() as conn:
        conn.call("CONFIG", "SET", "requirepass", "s3cr3t")
    caplog.set_level(logging.DEBUG, "bloomery")
    with pytest.raises(bloomery.Error) as error:
        bloomery.LocalFilter("redis://:wr0ng@127.0.0.1:%d/0" % filled.port, "k", timeout=5)
    assert "WRONGPASS" in str(error.value)
    with bloomery.LocalFilter(url(filled), "k", password="s3cr3t") as seen:
        assert "a" in seen
        assert "s3cr3t" not in repr(seen.status())
    assert "wr0ng" not in str(error.value) and "s3cr3t" not in caplog.text


def test_control_c_ends_the_wait():
    # A test that runs in the background may have inherited that SIGINT is ignored.
    program = ("import bloomery, signal, sys\n"
               "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
               "bloomery.LocalFilter(sys.argv[1], 'k')")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        child = subprocess.Popen(
            [sys.executable, "-c", program, "redis://127.0.0.1:%d" % silent.getsockname()[1]],
            env={**os.environ, "PYTHONPATH": str(Path(bloomery.__file__).parent.parent)},
            stderr=subprocess.PIPE, text=True)
        silent.settimeout(60)
        link, _ = silent.accept()
        begun = time.monotonic()
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=60)
        link.close()
    assert "KeyboardInterrupt" in said and child.returncode == -signal.SIGINT
    assert time.monotonic() - begun < 25 # the wait would have lasted for 30 s


def test_events_are_told_and_logged(filled, caplog):
    told = []
    caplog.set_level(logging.INFO, "bloomery")
    with bloomery.LocalFilter(url(filled), "k",
                              on_event=lambda event, text: told.append(event)) as seen:
        with filled.conn() as conn:
            conn.call("DEL", "k")
        wait_until(lambda: "gone" in told, 20, "the deletion is told")
        filled.kill()
        wait_until(lambda: "cut" in told, 20, "the cut is told")
        assert seen.contains("zz") is None
    assert told[0] == "loaded"
    assert {"INFO", "WARNING"} <= {record.levelname for record in caplog.records}


def test_copies_end_while_threads_ask(filled):
    """Nobody waits for ever, and nothing is used after it was freed."""
    for _ in range(20):
        seen = bloomery.LocalFilter(url(filled), "k")
        begun = threading.Barrier(4)

        def ask():
            begun.wait()
            while seen.contains("a") is not None and seen.contains_many(["a"] * 100)[0]:
                pass

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        begun.wait()
        seen.close()
        for thread in threads:
            thread.join(20)
            assert not thread.is_alive()
        del seen
        gc.collect()


def test_a_copy_of_a_stopped_server_does_not_know(filled):
    with bloomery.LocalFilter(url(filled), "k", max_stale_ms=500) as seen:
        assert seen.contains("zz") is False
        os.kill(filled.pid, signal.SIGSTOP)
        try:
            time_limit = time.monotonic() + 20
            while seen.contains("zz") is False:
                assert time.monotonic() < time_limit
            assert seen.contains("a") is True
        finally:
            os.kill(filled.pid, signal.SIGCONT)
        wait_until(lambda: seen.contains("zz") is False, 20, "the copy is fresh again")


def test_a_forked_child_opens_its_own(filled):
    with bloomery.LocalFilter(url(filled), "k") as seen:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                if seen.contains("a") is None:
                    with bloomery.LocalFilter(url(filled), "k") as own:
                        status = 0 if "a" in own and "zz" not in own else 2
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert "a" in seen
