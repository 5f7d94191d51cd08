# SPDX-License-Identifier: BSD-3-Clause
#
# The servers of the example of six machines in packaging/doc/cluster.md: two of them
# start with its configuration and users, find each other, and serve clients.

import os
import re
import subprocess

import pytest

from lib import neighbour, servers, tls
from lib.neighbour import A, B, node
from lib.servers import wait_until

WORDS = ("PEER-PASSWORD", "APP-PASSWORD", "ADMIN-PASSWORD", "NEIGHBOUR-PASSWORD")


def blocks():
    """The configuration and the users of the servers."""
    text = (servers.TOP / "packaging/doc/cluster.md").read_text()
    found = re.findall(r"^```ini\n(.*?)^```$", text, re.M | re.S)
    conf, = (block for block in found if "sidecar-of" in block)
    users, = (block for block in found if "user peer" in block)
    return conf, users


def write(path, text):
    path.write_text(text)
    path.chmod(0o600)


class Machine:
    """A folder that has the files of one machine."""

    def __init__(self, folder, files):
        conf, users = blocks()
        folder.mkdir()
        self.made = neighbour.Neighbour()
        self.made.say(user="bloomery", password="NEIGHBOUR-PASSWORD")
        self.port = servers.free_port()
        self.conf = folder / "bloomery.conf"
        write(folder / "users.acl", users)
        write(folder / "peer-password", "PEER-PASSWORD\n")
        write(folder / "neighbour-password", "NEIGHBOUR-PASSWORD\n")
        write(folder / "hash-secret", "0123456789abcdef" * 2 + "\n")
        write(folder / "admin", "ADMIN-PASSWORD\n")
        for name, path in (("server.pem", files.server[0]),
                           ("server.key", files.server[1]), ("ca.pem", files.ca)):
            (folder / name).write_bytes(path.read_bytes())
        for was, now in (("bind = 127.0.0.1 10.0.0.1", "bind = 127.0.0.1"),
                         ("tls-port = 8000", "tls-port = %d" % self.port),
                         ("127.0.0.1:7000", self.made.address),
                         ("/etc/bloomery", str(folder)),
                         ("/var/lib/bloomery", str(folder))):
            assert was in conf, was
            conf = conf.replace(was, now)
        write(self.conf, conf)

    def run(self, *words):
        env = {k: v for k, v in os.environ.items() if not k.startswith("BLOOMERY_")}
        return subprocess.run([servers.server_binary(), *map(str, words)], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=env)

    def start(self):
        self.process = servers.Process(
            [servers.server_binary(), self.conf], self.port, str(self.conf.parent))

    def end(self):
        self.made.close()
        self.process.child.terminate()
        assert self.process.child.wait(60) == 0, self.process.log()


@pytest.fixture
def machines(tmp_path):
    files = tls.Files(tmp_path)
    made = [Machine(tmp_path / name, files) for name in ("n1", "n2")]
    for at, one in enumerate(made):
        flags = ["master", "master"]
        flags[at] = "myself,master"
        one.made.say(myid=(A, B)[at], nodes=[
            node(A, made[0].port, flags[0], slots="0-8191", epoch=1),
            node(B, made[1].port, flags[1], slots="8192-16383", epoch=2)])
        one.context = files.context(cert=False)
        one.start()
    yield made
    for one in made:
        one.end()


def test_the_servers_of_the_example_serve(machines):
    for one in machines:
        got = one.run("--check-config", one.conf)
        assert got.returncode == 0, got.stdout
        wait_until(lambda m=one: m.run(
            "--ping=complete", "--ping-user=admin", "--ping-password-file=%s" %
            (m.conf.parent / "admin"), m.conf).stdout.strip() == "PONG", 60,
            "nothing is missing")
    with tls.Conn(machines[1].port, machines[1].context) as conn:
        assert str(conn.call("BF.ADD", "foo", "x")).startswith("NOAUTH")
        assert conn.call("AUTH", "app", "APP-PASSWORD") == b"OK"
        assert conn.call("BF.ADD", "foo", "x") == 1
        assert "MOVED" in str(conn.call("BF.ADD", "bar", "x"))
        assert len(conn.call("CLUSTER", "SLOTS")) == 2
        assert conn.call("READONLY") == b"OK"
        assert str(conn.call("FLUSHALL")).startswith("NOPERM")
