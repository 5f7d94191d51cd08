# SPDX-License-Identifier: BSD-3-Clause
"""Copies of the filters of a Bloomery server that stay fresh in the program.

    from bloomery import LocalFilter
    seen = LocalFilter("redis://127.0.0.1:7379/0", "urls")
    if "https://example.org/" in seen: ...

When the copy says absent, the server that it subscribes to would have said so too,
at some moment of the last `max_stale_ms` before the call.
"""
import atexit
import itertools
import logging
import os
import threading
import weakref
from typing import NamedTuple

from . import _local
from ._local import Error, Stale

__all__ = ["Error", "LocalFilter", "Stale", "Status"]

STATES = ("none", "fresh", "stale", "missing")
# The values of enum bloomery_local_event, with the level at which each is logged.
EVENTS = (("loaded", logging.INFO), ("gone", logging.INFO), ("changed", logging.INFO),
          ("cut", logging.WARNING), ("failed", logging.WARNING))
NO_WAIT, REPLICA_ALLOWED, MISSING_IS_ABSENT = 1, 2, 4

log = logging.getLogger("bloomery")
numbers = itertools.count(1)
filters = weakref.WeakValueDictionary()
teller = None  # the thread that tells events, from the first filter on


class Status(NamedTuple):
    """What a copy is now; `state` is none, fresh, stale or missing."""
    state: str
    error_code: int
    error: str
    age_ms: int
    loads: int
    connections: int
    items: int
    capacity: int
    layers: int
    size_bytes: int
    server: str


class LocalFilter(_local.Filter):
    """A copy of the filter `key` of the server `url`, which stays fresh.

    Returns when the copy is loaded, or the key is known to be missing; raises Error
    after `timeout` seconds, or at once where trying again would not help. With
    wait=False it returns at once, and the copy is unknown until it is loaded.

    url           redis://[[user]:password@]host[:port][/database], rediss:// (TLS),
                  unix:///path?db=database, or with Sentinels
                  redis+sentinel://host[:port][,host[:port]...]/name[/database]
    key           str or bytes
    max_stale_ms  how old a False may be
    refresh_ms    how long deleted items may stay True
    max_bytes     a larger filter is an error; 0 is no limit
    missing       "unknown", or "absent": a missing key is an empty filter
    replica       True: the server may be a replica
    on_event      is called as on_event(event, text) by a thread of this module; events
                  are loaded, gone, changed, cut and failed. The logger "bloomery" has
                  them in any case.
    """

    def __init__(self, url, key, *, timeout=30, max_stale_ms=1000, refresh_ms=60000,
                 max_bytes=0, missing="unknown", replica=False, wait=True, on_event=None,
                 user=None, password=None, ca_file=None, cert_file=None, key_file=None):
        if missing not in ("unknown", "absent"):
            raise ValueError('missing is "unknown" or "absent"')
        if not 0 < timeout < 4e6:
            raise ValueError("timeout is more than 0 and less than 4,000,000 seconds")
        if not (0 < max_stale_ms < 2 ** 32 and 0 < refresh_ms < 2 ** 32):
            raise ValueError("max_stale_ms and refresh_ms are from 1 to 4,294,967,295")
        if not 0 <= max_bytes < 2 ** 64:
            raise ValueError("max_bytes is from 0 (no limit) to 2**64 - 1")
        flags = ((0 if wait else NO_WAIT) | (REPLICA_ALLOWED if replica else 0)
                 | (MISSING_IS_ABSENT if missing == "absent" else 0))
        self.key = key
        self._on_event = on_event
        number = next(numbers)
        filters[number] = self
        start_teller()
        super().__init__(url, key, number, flags, max(1, round(timeout * 1000)),
                         max_stale_ms, refresh_ms, max_bytes, user, password, ca_file,
                         cert_file, key_file)

    def status(self):
        """Returns a Status; waits for nothing."""
        state, *rest = self._status()
        return Status(STATES[state], *rest)

    def __enter__(self):
        return self

    def __exit__(self, *nothing):
        self.close()


def tell(number, kind, text):
    copy = filters.get(number)
    if copy is None:
        return
    event, level = EVENTS[kind]
    log.log(level, "%s: %s", copy.key, text)
    if copy._on_event is not None:
        copy._on_event(event, text)


def tell_events():
    while True:
        event = _local.next_event()
        try:
            tell(*event)
        except Exception:
            log.exception("on_event failed")
        del event


def start_teller():
    global teller
    if teller is None:
        teller = threading.Thread(target=tell_events, name="bloomery", daemon=True)
        teller.start()


def forget_teller():
    global teller
    teller = None


def close_all():
    for copy in list(filters.values()):
        copy.close()


atexit.register(close_all)
os.register_at_fork(after_in_child=forget_teller)
