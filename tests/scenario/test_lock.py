# SPDX-License-Identifier: BSD-3-Clause
#
# One directory, one server: if two servers start at the same moment, exactly one
# serves, and the other reports why it does not. The directory is free as soon as its
# server has ended in any way.

import os
import subprocess

from lib import servers

RACES = int(os.environ.get("BLOOMERY_ROUNDS", "30"))


def start(folder, port):
    return subprocess.Popen(
        [servers.server_binary(), "--dir", str(folder), "--port", str(port),
         "--save", "", "--appendonly", "yes", "--loglevel", "notice"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def test_of_two_servers_on_one_directory_one_serves(tmp_path):
    for _ in range(RACES):
        racers = [start(tmp_path, servers.free_port()) for _ in range(2)]
        try:
            servers.wait_until(lambda: any(r.poll() is not None for r in racers),
                               20, "one of the two has ended")
            loser = next(r for r in racers if r.poll() is not None)
            winner = next(r for r in racers if r is not loser)
            told = loser.stderr.read().decode()
            assert loser.returncode == 1
            assert "another server uses the directory" in told, told
            assert winner.poll() is None
        finally:
            for racer in racers:
                racer.kill()  # not even SIGTERM: the lock ends with the process
                racer.wait()
                racer.stderr.close()
