# SPDX-License-Identifier: BSD-3-Clause
#
# `bloomery-load move` on a cluster of lib.cluster: planned moves, and what they
# leave behind.

import signal
import subprocess

from lib import replicas, resp, servers, slots
from lib.servers import time_factor, wait_until


def tool():
    return servers.server_binary().replace("bloomery-server", "bloomery-load")


class Move:
    """A run of the tool. The ends are pairs of lib.cluster, or words. In a cluster
    with TLS it needs the options for that."""

    def __init__(self, ring, ranges, source, target, *options):
        def word(end):
            return end if isinstance(end, str) else end.node.id

        way = next(p for p in ring.pairs if p.runs()).daemon
        self.process = subprocess.Popen(
            [tool(), "move", "--to", "%s:%d" % (way.host, way.port + bool(ring.tls)),
             *map(str, options), ranges, word(source), word(target)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.text = None

    def end(self, status=0, seconds=120):
        self.text, _ = self.process.communicate(timeout=seconds * time_factor())
        assert self.process.returncode == status, self.text
        return self.text

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)


def status(daemon):
    with daemon.conn() as conn:
        return replicas.parse_info(conn.call("SIDECAR", "STATUS"))


def is_copying(daemon, state="state="):
    return state in status(daemon).get("slot_pull0", "")


def keys(daemon, slot):
    """Returns how many keys of a slot are there, whoever owns it."""
    with daemon.conn() as conn:
        return conn.call("CLUSTER", "COUNTKEYSINSLOT", slot)


def wait_clean(daemon):
    """Waits until a copy was thrown away, and its keys are deleted."""
    def is_clean():
        got = status(daemon)
        return got["slot_pulls"] == "0" and got["slots_being_deleted"] == "0"
    wait_until(is_clean, 60, "the copy is thrown away")


def fill(ring, slot_list, keys_each=1, capacity=1000):
    """Adds filters in these slots, past the redirects."""
    with ring.client() as client:
        for slot in slot_list:
            for number in range(keys_each):
                key = "%s%d" % (slots.key_in(slot, "f"), number)
                reply, _ = client.call(key, "BF.RESERVE", key, "0.01", capacity)
                assert not isinstance(reply, resp.Error), reply
