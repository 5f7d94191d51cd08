# SPDX-License-Identifier: BSD-3-Clause
#
# The recipes of packaging/doc/recipes.md and forgetting.md on a real list: the names that Unicode has
# given to its characters, which every Python knows.

import sys
import threading
import time
import unicodedata

import pytest

from lib.servers import wait_until

PIECE = 10000


@pytest.fixture(scope="module")
def names():
    found = {unicodedata.name(chr(code), "") for code in range(sys.maxunicode)}
    found = sorted(found - {""})
    assert len(found) > 100000
    return found


def pieces(items):
    return [items[at:at + PIECE] for at in range(0, len(items), PIECE)]


def test_quota_before_an_import(server, names):
    known = names[::3]
    upload = names + names[:PIECE // 2]  # some stand twice
    quota = len(known) + 50000
    rate = 0.001
    with server.conn() as conn:
        conn.call("BF.RESERVE", "customer:7", str(rate), str(len(names)))
        for piece in pieces(known):
            conn.call("BF.MADD", "customer:7", *piece)
        stored = conn.call("BF.CARD", "customer:7")
        have, counted, new = set(known), 0, 0
        for piece in pieces(upload):
            fresh = conn.call("BF.COUNTNEW", "customer:7", *piece)
            really = len(set(piece) - have)
            assert really * (1 - rate) - 30 <= fresh <= really
            if conn.call("BF.CARD", "customer:7") + fresh > quota:
                break
            assert sum(conn.call("BF.MADD", "customer:7", *piece)) <= fresh
            have |= set(piece)
            counted, new = counted + fresh, new + really
        else:
            raise AssertionError("the quota stops no import")
        assert conn.call("BF.CARD", "customer:7") <= quota
        assert conn.call("BF.CARD", "customer:7") > quota - PIECE
        assert new * (1 - rate) - 100 <= counted <= new
        assert stored <= len(known)


def test_of_two_imports_at_the_same_time_one_counts_again(server, names):
    with server.conn() as one, server.conn() as other:
        one.call("WATCH", "customer:7")
        assert one.call("BF.COUNTNEW", "customer:7", *names[:100]) == 100
        other.call("BF.MADD", "customer:7", *names[50:150])
        one.call("MULTI")
        one.call("BF.MADD", "customer:7", *names[:100])
        assert one.call("EXEC") is None
        assert 45 <= one.call("BF.COUNTNEW", "customer:7", *names[:100]) <= 50


def test_is_this_name_taken(server, names):
    with server.conn() as conn:
        conn.call("CONFIG", "SET", "bf.missing-key", "error")
        assert conn.raw("BF.EXISTS", "names", "x").startswith(b"-ERR not found")
        conn.call("BF.RESERVE", "names", "0.001", str(len(names)))
        for piece in pieces(names):
            conn.call("BF.MADD", "names", *piece)
        for piece in pieces(names):
            assert 0 not in conn.call("BF.MEXISTS", "names", *piece)
        wrong = sum(sum(conn.call("BF.MEXISTS", "names",
                                  *[name + " 2" for name in piece]))
                    for piece in pieces(names))
        stats = conn.call("BF.STATS", "names")
        told = float(dict(zip(stats[::2], stats[1::2]))[b"error-rate"])
        assert told <= 0.001
        assert abs(wrong - told * len(names)) <= 0.05 * wrong + \
            5 * len(names) ** 0.5 * told ** 0.5
        assert conn.call("BF.WHICH", names[0], "names", "names") == [1, 1]


def test_of_many_clients_that_claim_a_name_one_wins(server, names):
    claims = [("BF.ADD", "names", name) for name in names[:2000]]
    won = []

    def claim():
        with server.conn() as conn:
            won.append(conn.pipeline(claims))

    with server.conn() as conn:
        conn.call("BF.RESERVE", "names", "0.001", "100000")
    clients = [threading.Thread(target=claim) for _ in range(4)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    winners = [sum(answers) for answers in zip(*won, strict=True)]
    assert max(winners) == 1
    assert sum(winners) >= 1990


def test_cards_that_are_reported_and_returned(server, names):
    """Half full, as the recipe says, with the names in the place of cards."""
    stolen, good = names[::2], names[1::2]
    with server.conn() as conn:
        conn.call("BF.RESERVE", "cards", "0.001", str(2 * len(stolen)), "DELETABLE")
        listed = []
        for piece in pieces(stolen):
            new = conn.call("BF.MADD", "cards", *piece)
            listed += [card for card, answer in zip(piece, new) if answer]
        returned = listed[::3]
        kept = sorted(set(stolen) - set(returned))
        answers = [answer for piece in pieces(returned)
                   for answer in conn.call("BF.MDEL", "cards", *piece)]
        assert set(answers) <= {1, -1}
        assert answers.count(-1) <= len(returned) / 1000
        for piece in pieces(kept):
            assert set(conn.call("BF.MEXISTS", "cards", *piece)) == {1}
        asked = sum(sum(conn.call("BF.MEXISTS", "cards", *piece))
                    for piece in pieces(good + returned))
        assert asked <= 0.001 * len(good + returned)
        # And they are stolen again.
        for piece in pieces(returned):
            conn.call("BF.MADD", "cards", *piece)
            assert set(conn.call("BF.MEXISTS", "cards", *piece)) == {1}


def test_a_stream_is_deduplicated(server, names):
    """Each event comes three times, in another order."""
    with server.conn() as conn:
        conn.call("BF.RESERVE", "events", "0.001", str(2 * len(names)), "AGEING", "86400")
        processed = []
        for stream in (names, names[::-1], names[1::2] + names[::2]):
            for piece in pieces(stream):
                answers = conn.call("BF.MADD", "events", *piece)
                processed += [name for name, new in zip(piece, answers) if new]
        assert len(set(processed)) == len(processed)
        assert len(processed) >= len(names) * (1 - 0.001)
        layers = conn.call("BF.STATS", "events")[-1]
        assert len(layers) <= 4  # one generation, or two, that grew
        plan = conn.call("BF.PLAN", "0.001", "1000000", "AGEING", "86400")
        plan = dict(zip(plan[::2], plan[1::2]))
        assert float(plan[b"bits-per-item"]) < 23 and plan[b"bytes"] < 2900000


def test_after_a_day_an_event_is_new(server, names):
    """A day of one second."""
    with server.conn() as conn:
        conn.call("BF.RESERVE", "events", "0.001", str(len(names)), "AGEING", "1")
        begin = time.time()
        conn.call("BF.MADD", "events", *names[:PIECE])
        again = conn.call("BF.MADD", "events", *names[:PIECE])
        assert sum(again) == 0 or time.time() > begin + 1
        wait_until(lambda: conn.call("BF.CARD", "events") == 0, what="the next day")
        assert time.time() > begin + 1
        assert sum(conn.call("BF.MADD", "events", *names[:PIECE])) >= 0.998 * PIECE


def test_a_code_is_good_once(server, names):
    """Clients try the same codes at the same time; names in the place of users."""
    codes = ["%s:%06d" % (name, n) for n, name in enumerate(names[:4000])]
    won = []

    def use():
        with server.conn() as conn:
            won.append(conn.pipeline([("BF.ADD", "used-codes", code) for code in codes]))

    with server.conn() as conn:
        conn.call("BF.RESERVE", "used-codes", "0.000001", "100000", "AGEING", "600",
                  "GENERATIONS", "16")
    clients = [threading.Thread(target=use) for _ in range(4)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    winners = [sum(answers) for answers in zip(*won, strict=True)]
    assert max(winners) == 1
    assert sum(winners) >= len(codes) - 1
    with server.conn() as conn:
        assert sum(conn.call("BF.MEXISTS", "used-codes", *codes)) == len(codes)
