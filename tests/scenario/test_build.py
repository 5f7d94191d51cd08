# SPDX-License-Identifier: BSD-3-Clause
#
# The make targets that a user types: run, install, uninstall, clean, help.

import os
import signal
import subprocess

import pytest

from lib import resp, servers

MODE = os.environ.get("BLOOMERY_MODE", "release")
pytestmark = pytest.mark.skipif(MODE != "release", reason="one build is enough")


def make(*words, **more):
    """Runs make without the job server of an outer make."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    return subprocess.run(["make", "-C", str(servers.TOP), *words], env=env,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=True, timeout=600, **more).stdout


def files(folder):
    return {os.path.relpath(os.path.join(where, name), folder)
            for where, _, names in os.walk(folder) for name in names}


def test_uninstall_removes_all_installed_files_but_the_configuration(tmp_path):
    make("install", "DESTDIR=%s" % tmp_path, "PREFIX=/usr/local")
    there = files(tmp_path)
    assert "usr/local/bin/bloomery-server" in there and len(there) > 9
    unit = tmp_path / "usr/local/lib/systemd/system/bloomery.service"
    assert "ExecStart=/usr/local/bin/bloomery-server " \
        "/usr/local/etc/bloomery/bloomery.conf\n" in unit.read_text()
    page = tmp_path / "usr/local/share/man/man5/bloomery.conf.5"
    assert "/usr/local/etc/bloomery/bloomery.conf" in page.read_text()
    (tmp_path / "usr/local/etc/bloomery/bloomery.conf").write_text("; mine\n")
    make("install", "DESTDIR=%s" % tmp_path, "PREFIX=/usr/local")
    make("uninstall", "DESTDIR=%s" % tmp_path, "PREFIX=/usr/local")
    assert files(tmp_path) == {"usr/local/etc/bloomery/bloomery.conf"}
    assert (tmp_path / "usr/local/etc/bloomery/bloomery.conf").read_text() == \
        "; mine\n"


def test_clean_removes_the_build_and_nothing_else():
    said = [line for line in make("--no-print-directory", "-n", "clean")
            .splitlines() if line]
    assert said == ["rm -rf build"]


def test_help_shows_no_variable_of_make():
    said = make("help")
    assert "  run " in said and "$" not in said


def test_run_says_how_to_build_a_missing_test():
    path = "build/release/tests/unit/core/test_nothing"
    got = subprocess.run([servers.TOP / "tests" / "run", servers.TOP / path],
                         capture_output=True, text=True, timeout=60)
    assert (got.returncode, got.stdout) == (2, "not built: make %s\n" % path)


class Run:
    """`make run` in its own process group."""

    def __init__(self, folder):
        self.port = servers.free_port()
        self.process = subprocess.Popen(
            ["make", "-C", str(servers.TOP), "run", "PORT=%d" % self.port,
             "DATA=%s" % folder], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True)

    def call(self, *words):
        conn = resp.Conn(("127.0.0.1", self.port))
        try:
            return conn.call(*words)
        finally:
            conn.close()

    def answers(self):
        assert self.process.poll() is None, self.process.stdout.read()
        try:
            return self.call("PING") == b"PONG"
        except OSError:
            return False

    def stop(self):
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.communicate(timeout=60)


def test_two_servers_run_beside_each_other(tmp_path):
    runs = [Run(tmp_path / name) for name in ("one", "two")]
    try:
        for run in runs:
            servers.wait_until(run.answers, 120, "make run answers")
        assert runs[0].call("BF.ADD", "k", "x") == 1
        assert runs[1].call("BF.EXISTS", "k", "x") == 0
    finally:
        for run in runs:
            run.stop()
    assert files(tmp_path / "one") and files(tmp_path / "two")


HARDENING = ["-fcf-protection", "-fstack-clash-protection",
             "-fstack-protector-strong"]


def flags_of(compiler):
    """Returns the compiler flags of a source file of the server."""
    lines = make("-n", "V=1", "CC=%s" % compiler, "-W", "src/base/buf.c",
                 "build/release/src/base/buf.o").splitlines()
    return [word for line in lines
            if "-c src/base/buf.c" in line for word in line.split()]


def test_the_server_is_compiled_with_every_hardening_of_the_compiler(tmp_path):
    flags = flags_of("gcc")
    assert set(HARDENING) <= set(flags), flags
    assert any(f.startswith("-D_FORTIFY_SOURCE=") for f in flags), flags
    for lacks in HARDENING[:2]:
        old = tmp_path / "cc"
        old.write_text('#!/bin/sh\ncase " $* " in *" %s "*) exit 1;; esac\n'
                       'exec gcc "$@"\n' % lacks)
        old.chmod(0o755)
        found = flags_of(old)
        assert lacks not in found and set(HARDENING) - {lacks} <= set(found)
    old.write_text('#!/bin/sh\ncase "$*" in *FORTIFY_SOURCE=3*) exit 1;; esac\n'
                   'exec gcc "$@"\n')
    assert "-D_FORTIFY_SOURCE=2" in flags_of(old)
