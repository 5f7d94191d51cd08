# SPDX-License-Identifier: BSD-3-Clause
"""What every kind of filter must survive with the same bits: copies of all sorts, a
crash and a stop."""

from . import replicas


def same(conn, one, other):
    values = conn.call("DEBUG", "DIGEST-VALUE", one, other)
    assert values[0] == values[1], "%s is not as %s" % (other, one)


def copies(conn, key):
    """Copies KEY by DUMP, by COPY with RENAME and MOVE, and by BF.MERGE. Returns the
    names of the copies."""
    assert conn.call("RESTORE", "dump", "0", conn.call("DUMP", key)) == b"OK"
    assert conn.call("COPY", key, "copy") == 1
    assert conn.call("RENAME", "copy", "renamed") == b"OK"
    assert conn.call("MOVE", "renamed", "3") == 1
    conn.call("SELECT", "3")
    assert conn.call("MOVE", "renamed", "0") == 1
    conn.call("SELECT", "0")
    assert conn.call("BF.MERGE", "united", key) == b"OK"
    names = ["dump", "renamed", "united"]
    for name in names:
        same(conn, key, name)
    return names


def again(node, rng):
    """Kills or stops a node and starts it again. Returns a new connection."""
    before = replicas.digest(node)
    if rng.randrange(2):
        node.crash()
    else:
        node.child.terminate()
        node.wait_exit()
    node.restart()
    assert replicas.digest(node) == before
    return node.conn()
