# SPDX-License-Identifier: BSD-3-Clause
#
# `include = PATTERN` in the configuration, as in the one that packages install: the
# files count in the order of their names and in the place of the line. SIGHUP,
# --check-config and --ping read the same, and rewritten.conf and the command line still
# come after them.

import os
import re
import subprocess

import pytest

from lib import servers
from lib.servers import wait_until
from test_options import hang_up, refused
from test_rewrite import Home, call, values

pytestmark = pytest.mark.skipif(servers.sanitized(), reason="test_conf_load.c has these lines")

SHORT = (servers.TOP / "packaging/conf/bloomery.conf").read_text()


@pytest.fixture
def home(tmp_path):
    """A server whose files are as those of a package, with conf.d."""
    parts = tmp_path / "conf.d"
    parts.mkdir()
    with Home(SHORT.replace("/etc/bloomery/conf.d", str(parts))) as home:
        home.parts = parts
        yield home


def write(home, name, **options):
    lines = ["%s = %s" % (key.replace("_", "-"), value) for key, value in options.items()]
    (home.parts / name).write_text("[network]\n%s\n" % "\n".join(lines))


def asks(home, *words):
    got = subprocess.run([servers.server_binary(), *map(str, words)], text=True, timeout=60,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=home.folder)
    return got.returncode, got.stdout


def test_files_count_in_the_order_of_their_names(home):
    write(home, "20-b.conf", timeout=22, tcp_keepalive=22)
    write(home, "10-a.conf", timeout=11, tcp_keepalive=11, maxclients=111)
    write(home, "30-c.conf", timeout=33, maxclients=333, auth_timeout=33)
    write(home, "40-d.conf.dpkg-old", timeout=44)
    server = home.start("--auth-timeout", 5)
    got = values(server)
    assert [got[name.encode()] for name in ("timeout", "tcp-keepalive", "maxclients",
                                            "auth-timeout")] == [b"33", b"22", b"333", b"5"]

    # rewritten.conf comes after them, also at a reload, and before the command line.
    assert call(server, "CONFIG", "SET", "timeout", 99, "auth-timeout", 98) == b"OK"
    assert call(server, "CONFIG", "REWRITE") == b"OK"
    write(home, "50-e.conf", timeout=55, tcp_keepalive=55, auth_timeout=55)
    hang_up(server)
    wait_until(lambda: values(server)[b"tcp-keepalive"] == b"55", 20)
    assert values(server)[b"timeout"] == b"99" and values(server)[b"auth-timeout"] == b"5"

    # A mistake in one of them changes nothing.
    write(home, "60-f.conf", tcp_keepalive=66, nonsense=1)
    hang_up(server)
    wait_until(lambda: b"60-f.conf:3: unknown option" in server.log(), 20)
    assert values(server)[b"tcp-keepalive"] == b"55"


def test_a_line_counts_in_its_place(home):
    write(home, "a.conf", timeout=2, tcp_keepalive=2)
    text = "[network]\ntimeout = 1\ninclude = %s/*.conf\ntcp-keepalive = 3\n" % home.parts
    with open(home.file, "w") as file:
        file.write(text)
    got = values(home.start())
    assert got[b"timeout"] == b"2" and got[b"tcp-keepalive"] == b"3"


def test_no_files_are_fine_and_unreadable_ones_a_mistake(home):
    assert asks(home, "--check-config", home.file, "--dir", home.data)[0] == 0
    os.rmdir(home.parts)
    assert asks(home, "--check-config", home.file, "--dir", home.data)[0] == 0
    home.parts.symlink_to(home.parts)  # a folder that not even root can read
    code, said = asks(home, "--check-config", home.file, "--dir", home.data)
    assert code == 2 and "include: the folder cannot be read" in said
    home.parts.unlink()
    home.parts.mkdir()
    for what in ("a folder", "a link to nothing"):
        bad = home.parts / "bad.conf"
        if what == "a folder":
            bad.mkdir()
        else:
            bad.symlink_to("nothing")
        code, said = asks(home, "--check-config", home.file, "--dir", home.data)
        assert code == 2 and "bad.conf" in said, said
        assert "bad.conf" in refused(conf=home.text())
        if what == "a folder":
            bad.rmdir()


def test_check_config_and_ping_read_them(home):
    server = home.start()
    write(home, "port.conf", port=server.port)
    code, said = asks(home, "--ping", home.file)
    assert code == 0 and said == "PONG\n"
    write(home, "port.conf", port=servers.free_port())
    assert asks(home, "--ping", home.file)[0] == 1
    write(home, "port.conf", port="many")
    for word in ("--ping", "--check-config"):
        code, said = asks(home, word, home.file)
        assert code == 2 and "port.conf:2: port" in said, said


def test_the_short_file_agrees_with_the_options(home):
    assert len(SHORT.splitlines()) < 80
    assert SHORT.endswith("\ninclude = /etc/bloomery/conf.d/*.conf\n")
    full = (servers.TOP / "conf/bloomery.conf").read_text()
    section = None
    sections = {}
    for line in full.splitlines():
        section = line if line.startswith("[") else section
        option = re.match(r"# ([a-z-]+) = ", line)
        if option:
            sections[option.group(1)] = section
    shown = 0
    for line in SHORT.splitlines():
        section = line if line.startswith("[") else section
        option = re.match(r"# ([a-z-]+) = ", line)
        if option:
            assert sections[option.group(1)] == section, line
            shown += 1
    assert shown > 15
    plain = [line for line in SHORT.splitlines() if not re.match(r"# tls-|# aclfile|# [a-z-]+-file =", line)]
    with open(home.file, "w") as file:
        file.write(re.sub(r"^# (?=[a-z-]+ = )", "", "\n".join(plain), flags=re.M) + "\n")
    code, said = asks(home, "--check-config", home.file, "--dir", home.data)
    assert code == 0, said
