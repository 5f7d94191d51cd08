# SPDX-License-Identifier: BSD-3-Clause
#
# Large requests and long pipelines.

import pytest

from lib import resp, servers


@pytest.mark.parametrize("proto", [2, 3])
def test_a_madd_of_ten_thousand(server, proto):
    with server.conn(proto) as conn:
        items = ["item:%d" % i for i in range(10000)]
        conn.call("BF.RESERVE", "k", "1e-6", "20000")
        assert conn.call("BF.MADD", "k", *items) == [1] * 10000
        assert conn.call("BF.MADD", "k", *items) == [0] * 10000
        assert conn.call("BF.MEXISTS", "k", *items) == [1] * 10000
        absent = conn.call("BF.MEXISTS", "k", *["no:%d" % i
                                                for i in range(10000)])
        assert len(absent) == 10000 and sum(absent) <= 5
        assert conn.call("BF.CARD", "k") == 10000


def test_a_madd_of_ten_thousand_scales(server):
    with server.conn() as conn:
        items = ["item:%d" % i for i in range(10000)]
        added = conn.call("BF.MADD", "k", *items)
        assert len(added) == 10000 and sum(added) > 9700
        assert conn.call("BF.CARD", "k") == sum(added)
        assert conn.call("BF.INFO", "k", "FILTERS") == 7
        assert conn.call("BF.MEXISTS", "k", *items) == [1] * 10000


def test_a_request_of_a_million_arguments_is_answered(server):
    """Parsing it takes longer than a connection's turn; the server executes it
    nevertheless."""
    with server.conn(timeout=60 * servers.time_factor()) as conn:
        count = 250000 if servers.sanitized() else 1000000
        conn.send(resp.command("BF.MEXISTS", "none", *([7] * count)))
        assert conn.read_raw() == b"*%d\r\n" % count + b":0\r\n" * count
        with server.conn() as other:
            assert other.call("PING") == b"PONG"


def test_an_item_of_a_megabyte(server):
    with server.conn() as conn:
        item = bytes(range(256)) * 4096
        assert conn.call("BF.ADD", "k", item) == 1
        assert conn.call("BF.ADD", "k", item) == 0
        assert conn.call("BF.EXISTS", "k", item) == 1
        assert conn.call("BF.EXISTS", "k", item[:-1]) == 0
        assert conn.call("BF.EXISTS", "k", item[:-1] + b"\x00") == 0
        assert conn.call("BF.MADD", "k", item, item + b"x", item) == [0, 1, 0]
        assert conn.call("ECHO", item) == item


def test_a_key_of_a_megabyte(server):
    with server.conn() as conn:
        key = b"k" * (1 << 20)
        assert conn.call("BF.ADD", key, "a") == 1
        assert conn.call("KEYS", "*") == [key]
        assert conn.call("DEL", key) == 1


def test_a_pipeline_of_fifty_thousand_keeps_its_order(server):
    with server.conn(timeout=60) as conn:
        import threading
        count = 50000
        data = b"".join(resp.command("ECHO", i) if i % 3 else
                        resp.command("BF.ADD", "k%d" % (i % 7), i)
                        for i in range(count))
        sender = threading.Thread(target=conn.send, args=(data,))
        sender.start()
        wrong = 0
        for i in range(count):
            value = conn.read()
            if i % 3:
                wrong += value != str(i).encode()
            else:
                wrong += value not in (0, 1)
        sender.join()
        assert wrong == 0
        assert conn.call("PING") == b"PONG"


def test_pipelined_single_commands_equal_one_batch(server):
    """A run of one-item commands may be executed as a batch, with the same
    replies."""
    with server.conn() as conn:
        conn.call("BF.INSERT", "a", "CAPACITY", "50", "ERROR", "0.2", "SEED",
                  "0123456789abcdef0123456789abcdef")
        conn.call("BF.INSERT", "b", "CAPACITY", "50", "ERROR", "0.2", "SEED",
                  "0123456789abcdef0123456789abcdef")
        items = [str(i * i % 997) for i in range(1200)]
        singles = conn.pipeline([("BF.ADD", "a", x) for x in items])
        batch = []
        for start in range(0, 1200, 100):
            batch += conn.call("BF.MADD", "b", *items[start:start + 100])
        assert singles == batch
        assert conn.call("BF.INFO", "a") == conn.call("BF.INFO", "b")
        probes = ["p%d" % i for i in range(2000)]
        assert conn.pipeline([("BF.EXISTS", "a", p) for p in probes]) == \
            conn.call("BF.MEXISTS", "b", *probes)
