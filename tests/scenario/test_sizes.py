# SPDX-License-Identifier: BSD-3-Clause
#
# Large filters with few items: files and memory are only as large as the used parts,
# on a server that saves, copies, restarts and has a replica.

import os
import subprocess
from pathlib import Path

import pytest

from lib import replicas, servers
from lib.servers import wait_until

MIB = 1 << 20
FILTERS, CAPACITY = 3, 100000000  # 122 MiB each


pytestmark = pytest.mark.skipif(servers.sanitized(),
                                reason="memory of a sanitizer build")


def reserve(server):
    with server.conn() as conn:
        for i in range(FILTERS):
            assert conn.call("BF.RESERVE", "k%d" % i, "0.01",
                             CAPACITY) == b"OK"
        assert conn.call("BF.ADD", "k0", "x") == 1
        assert conn.call("BF.INFO", "k0", "SIZE") > 100 * MIB


def check(server):
    with server.conn() as conn:
        assert conn.call("DBSIZE") == FILTERS
        assert conn.call("BF.EXISTS", "k0", "x") == 1
        assert conn.call("BF.EXISTS", "k1", "x") == 0
        assert conn.call("BF.INFO", "k2", "CAPACITY") == CAPACITY


def size_below(folder):
    return sum(os.path.getsize(os.path.join(where, name))
               for where, _, names in os.walk(folder) for name in names
               if name != "log")


def test_reserved_filters_stay_small_on_disk_and_after_a_start(group):
    server = group.node("--appendonly", "yes")
    before = server.rss()
    reserve(server)
    with server.conn() as conn:
        assert conn.call("SAVE") == b"OK"
        conn.call("BGREWRITEAOF")
        wait_until(lambda: int(replicas.info(server, "persistence")
                               ["aof_rewrite_in_progress"]) == 0, 20)
    assert size_below(server.folder) < 100000
    assert server.rss() - before < 32 * MIB
    server.child.terminate()
    assert server.wait_exit() == 0
    server.restart()
    check(server)
    assert server.rss() - before < 32 * MIB
    verified = subprocess.run(
        [Path(servers.server_binary()).with_name("bloomery-check"), "verify",
         os.path.join(server.folder, "bloomery.snapshot")],
        capture_output=True, timeout=60 * servers.time_factor())
    assert verified.returncode == 0, verified


def test_a_copy_of_a_reserved_filter_takes_no_memory(group):
    server = group.node()
    before = server.rss()
    reserve(server)
    with server.conn() as conn:
        assert conn.call("COPY", "k0", "copy") == 1
        assert conn.call("BF.EXISTS", "copy", "x") == 1
    assert server.rss() - before < 32 * MIB


def test_a_replica_gets_reserved_filters_and_no_zeros(group):
    primary, replica = group.node(), group.node()
    before = replica.rss()
    reserve(primary)
    replicas.follow(replica, primary)
    replicas.wait_even(primary, replica)
    check(replica)
    assert replica.rss() - before < 48 * MIB
