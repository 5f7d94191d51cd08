# SPDX-License-Identifier: BSD-3-Clause
#
# How much later than its node a daemon knows who owns which slots.

import threading
import time

from lib import resp, slots
from lib.cluster import owners_of

STABLE_S = 0.3      # shorter-lived maps are not counted: a poll may miss them
PERIOD_S = 0.005


class Lag:
    """Polls all nodes and daemons of a cluster, in a thread for each pair."""

    def __init__(self, cluster):
        self.over = threading.Event()
        self.histories = {}     # pair: ([(time, map)] of its node, of its daemon)
        self.threads = [threading.Thread(target=self.watch, args=(pair,),
                                         daemon=True) for pair in cluster.pairs]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()

    def watch(self, pair):
        histories = self.histories[pair] = ([], [])
        conns = [None, None]
        while not self.over.wait(PERIOD_S):
            for number, process in enumerate(pair.both()):
                if not process.runs():
                    continue
                try:
                    conns[number] = conns[number] or resp.Conn(process.address,
                                                               timeout=1)
                    owners = owners_of(conns[number].call("CLUSTER", "SLOTS"))
                except slots.GONE:
                    conns[number] = None
                    continue
                history = histories[number]
                if owners is not None and \
                        (not history or history[-1][1] != owners):
                    history.append((time.monotonic(), owners))
        for conn in conns:
            if conn is not None:
                conn.close()

    def is_stable(self):
        """Tells whether every node has had its map for long enough to be counted."""
        return all(time.monotonic() - node[-1][0] > STABLE_S
                   for node, _ in self.histories.values())

    def lags(self, limit):
        """Returns the seconds until the daemon had each lasting map of its node, and
        the maps that lasted for longer than `limit` and never were its own, as
        text."""
        lags, never = [], []
        for pair, (node, daemon) in self.histories.items():
            ends = [begin for begin, _ in node[1:]] + [time.monotonic()]
            for (begin, owners), end in list(zip(node, ends))[1:]:
                if end - begin < STABLE_S:
                    continue
                # A map may come again, and the daemon may be the first to see it.
                seen = [t for t, known in daemon if known == owners and
                        t > begin - STABLE_S]
                if seen:
                    lags.append(max(0.0, seen[0] - begin))
                elif end - begin > limit:
                    never.append("%r: %s" % (pair, owners))
        return sorted(lags), never
