# SPDX-License-Identifier: BSD-3-Clause
#
# What the Python programs share: the words on the command line, and the lines
# that the driver reads (README.md).

import os
import sys
import time
import traceback

PORT, DIALECT = int(sys.argv[1]), sys.argv[2]
CA = os.environ.get("BLOOMERY_CA")  # With it, connections use TLS.
BLOOM = DIALECT != "redis-server"
# Where redis-server stands in for the server, a set stands in for a filter:
# SADD, SISMEMBER and SCARD answer as BF.ADD, BF.EXISTS and BF.CARD do.
ADD, EXISTS, CARD = (("BF.ADD", "BF.EXISTS", "BF.CARD") if BLOOM
                     else ("SADD", "SISMEMBER", "SCARD"))
TYPE = {"valkey": "bloomfltr", "redis": "MBbloom--", "redis-server": "set"}[DIALECT]

failed = False


def check(area, protocol, what, body):
    global failed
    label = "%s RESP%d %s" % (area, protocol, what)
    try:
        body()
    except Exception as problem:
        failed = True
        where = traceback.extract_tb(problem.__traceback__)[-1]
        print("not ok %s: %s: %s (%s:%d)" % (
            label, type(problem).__name__, str(problem).replace("\n", " "),
            where.filename.split("/clients/")[-1], where.lineno))
    else:
        print("ok " + label)
    sys.stdout.flush()


def lacks(area, why):
    print("lacks %s %s" % (area, why))


def note(text):
    print("note " + text)


def same(got, want):
    assert got == want, "got %r, want %r" % (got, want)


def raises(kind, body, text):
    """Fails unless BODY raises an error of this kind that says TEXT."""
    try:
        got = body()
    except kind as error:
        assert text in str(error), "said %r" % str(error)
    else:
        raise AssertionError("no error but %r" % (got,))


def ints(values):
    return [int(v) for v in values]


def until(condition, what, seconds=5):
    """Asks again until it is so; with a deadline."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "never: " + what
        time.sleep(0.002)


def finish():
    print("end")
    sys.exit(1 if failed else 0)
