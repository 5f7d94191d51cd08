# SPDX-License-Identifier: BSD-3-Clause
#
# Runs bloomery-load and reads its report.

import re
import subprocess
from pathlib import Path

from lib import servers

DONE, INCOMPLETE, USAGE, UNREADABLE = range(4)


def program():
    return str(Path(servers.server_binary()).with_name("bloomery-load"))


def load(*args, status=DONE, stdin=b"", seconds=60, **more):
    got = subprocess.run([program()] + [str(a) for a in args], input=stdin,
                         capture_output=True,
                         timeout=seconds * servers.time_factor(), **more)
    assert not servers.REPORTS.search(got.stderr), got.stderr.decode()
    assert status is None or got.returncode == status, (args, got)
    return got


def to(server):
    return ["--to", "127.0.0.1:%d" % server.port]


def figures(got):
    """Returns the report as a dict; what was skipped is a dict in it."""
    out = {"skipped": {}}
    for name, value in re.findall(r"^    (\S.*?)  +(.*)$", got.stdout.decode(),
                                  re.M):
        if name == "skipped":
            count, what = value.split(" ", 1)
            out["skipped"][what] = out["skipped"].get(what, 0) + int(count)
        else:
            out[name] = int(value) if value.isdigit() else value
    return out


def present(server, key, words, db=0):
    with server.conn() as conn:
        conn.call("SELECT", db)
        return conn.call("BF.MEXISTS", key, *words) == [1] * len(words)
