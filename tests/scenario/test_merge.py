# SPDX-License-Identifier: BSD-3-Clause
#
# Merge on heal: a primary and its replica are cut off from each other, the replica is
# promoted, clients write to both. When the old primary follows, every add that it
# acknowledged is on the new primary, and what cannot be added is in a quarantine.

import contextlib
import re
import shutil
from pathlib import Path

import pytest

from lib import cluster, cluster_net, failover, replicas, resp, servers, slots
from lib.replicas import Watch, follow, info, lead, wait_even
from lib.servers import wait_until

ON = ("--merge-on-heal", "yes")
JOURNAL, NO_JOURNAL = ("--appendonly", "yes"), ("--appendonly", "no")


def stats(server):
    """Returns the figures of merges."""
    return {name[6:]: int(value) for name, value in info(server, "stats").items()
            if name.startswith("merge_")}


def folder(server):
    made = getattr(server, "shim", None)
    return Path(made.data_dir if made else server.folder)


def files(server, pattern):
    return sorted(folder(server).rglob(pattern))


def quarantine(server):
    """Returns the commands of all quarantine files as lists of words."""
    commands = []
    for path in files(server, "quarantine-*.resp"):
        data, at = path.read_bytes(), 0
        while at < len(data):
            end = resp.reply_end(data, at)
            commands.append(resp.decode(data[at:end]))
            at = end
    return [[w.decode("latin-1") for w in words] for words in commands]


def part(primary, replica, proxy):
    """Cuts the replica off and promotes it."""
    wait_even(primary, replica)
    proxy.up = False
    proxy.cut()
    lead(replica)


def add(server, key, prefix, count):
    """Adds items in pipelines; all are acknowledged when it returns."""
    items = ["%s:%d" % (prefix, i) for i in range(count)]
    with server.conn() as conn:
        for begin in range(0, count, 500):
            some = items[begin:begin + 500]
            for reply in conn.pipeline([("BF.ADD", key, i) for i in some]):
                assert reply in (0, 1), reply
    return items


def missing(server, key, items):
    with server.conn() as conn:
        found = []
        for begin in range(0, len(items), 1000):
            found += conn.call("BF.MEXISTS", key, *items[begin:begin + 1000])
    return [i for i, there in zip(items, found) if not there]


def heal(old, new, wait=True):
    follow(old, new, wait=wait)


def is_merged(old, offers=1):
    try:
        return replicas.link_is_up(old) and stats(old)["offers"] >= offers and \
            stats(old)["waiting_bytes"] == 0 and not files(old, "heal-*")
    except slots.GONE:
        return False


def is_killed(server):
    """Whether it does not answer; then it has ended, when this returns."""
    try:
        stats(server)
    except slots.GONE:
        server.child.wait(60 * servers.time_factor())
        return True
    return False


def wait_merged(old, seconds=60, **more):
    wait_until(lambda: is_merged(old, **more), seconds, "all adds are offered")


@pytest.mark.parametrize("dialect", ("valkey", "redis"))
def test_adds_to_one_life_of_a_key(group, dialect):
    def life(key):
        return re.search(rb"incarnation:(\d+)", conn.call("DEBUG", "OBJECT", key))[1]

    server = group.node("--dialect", dialect)
    with server.conn() as conn:
        conn.call("BF.ADD", "key", "first")
        first = life("key")
        assert conn.call("BF.INSERT", "key", "IFINCARNATION", first, "ITEMS", "a",
                         "first") == [1, 0]
        conn.call("DEL", "key")
        conn.call("BF.ADD", "key", "second")
        assert life("key") != first
        got = conn.call("BF.INSERT", "key", "IFINCARNATION", first, "ITEMS", "b")
        assert "the incarnation of the key is another one" in str(got)
        assert conn.call("BF.EXISTS", "key", "b") == 0
        for kind in (("DELETABLE",), ("AGEING", "100")):
            conn.call("DEL", "key")
            conn.call("BF.INSERT", "key", *kind, "ITEMS", "a")
            got = conn.call("BF.INSERT", "key", "IFINCARNATION", life("key"),
                            "ITEMS", "b")
            assert str(got) == ("ERR IFINCARNATION takes no filter that forgets "
                                "items (DELETABLE, AGEING)")
            assert conn.call("BF.CARD", "key") == 1


@pytest.mark.parametrize("journal", (JOURNAL, NO_JOURNAL), ids=("journal", "none"))
def test_adds_of_both_sides_are_there(group, journal):
    primary, replica, proxy = group.pair(*ON, *journal)
    with primary.conn() as conn:
        for key in ("one", "two"):
            assert conn.call("BF.RESERVE", key, "0.000001", 200000) == b"OK"
    before = add(primary, "one", "before", 1000)
    part(primary, replica, proxy)
    old = {key: add(primary, key, "old", 20000) for key in ("one", "two")}
    new = add(replica, "one", "new", 10000)
    heal(primary, replica)
    wait_merged(primary)
    for key, items in old.items():
        assert missing(replica, key, items) == []
    assert missing(replica, "one", before + new) == []
    wait_even(replica, primary)
    got = stats(primary)
    assert got["items_quarantined"] == got["items_dropped"] == 0
    assert got["lost_bytes"] == 0 and got["offers"] == 1
    assert 39990 <= got["items_added"] <= 40000
    assert quarantine(primary) == []


def test_what_cannot_be_added_is_in_the_quarantine(group):
    primary, replica, proxy = group.pair(*ON)
    with primary.conn() as conn:
        for key in ("same", "gone", "anew", "here", "there"):
            conn.call("BF.ADD", key, "first")
        conn.call("BF.INSERT", "del", "DELETABLE", "ITEMS", "first")
        conn.call("BF.INSERT", "age", "AGEING", "1000", "ITEMS", "first")
        conn.call("SELECT", "3")
        conn.call("BF.ADD", "same", "first")
    part(primary, replica, proxy)
    with primary.conn() as conn:
        for key in ("same", "gone", "anew", "here", "there", "del", "age"):
            assert conn.call("BF.MADD", key, "a", "b") == [1, 1]
        conn.call("DEL", "here")
        conn.call("BF.ADD", "fresh", "x")
        conn.call("BF.DEL", "del", "a")
        conn.call("RENAME", "there", "elsewhere")
        conn.call("SELECT", "3")
        conn.call("BF.ADD", "same", "c")
        conn.call("BF.ADD", "gone", "d")
    with replica.conn() as conn:
        conn.call("DEL", "gone")
        conn.call("DEL", "anew")
        conn.call("BF.ADD", "anew", "other")
    heal(primary, replica)
    wait_merged(primary)
    assert missing(replica, "same", ["a", "b"]) == []
    with replica.conn() as conn:
        assert conn.call("BF.EXISTS", "anew", "a") == 0
        assert conn.call("EXISTS", "gone", "fresh", "elsewhere") == 0
        assert conn.call("EXISTS", "here", "there") == 2
        conn.call("SELECT", "3")
        assert conn.call("BF.EXISTS", "same", "c") == 1
    plain = [[re.sub(r"^[0-9.e-]{4,}$", "#", w) for w in words]
             for words in quarantine(primary)]
    lines = [" ".join(words) for words in plain]
    for line in ("BF.MADD gone a b", "BF.MADD anew a b", "BF.MADD here a b",
                 "BF.MADD there a b", "BF.INSERT del ITEMS a b",
                 "BF.INSERT age ITEMS a b", "DEL here", "BF.MDEL del a",
                 "RENAME there elsewhere"):
        assert line in lines, lines
    assert any(l.startswith("BF.INSERT fresh CAPACITY") for l in lines)
    assert not any("INCARNATION" in l or "PLACED" in l for l in lines)
    assert not any(l.startswith("BF.MADD same") for l in lines), lines
    got = stats(primary)
    # Adds count by items; of the others, each command counts once.
    assert got["items_quarantined"] == 11 + 4
    assert got["items_added"] == 3 and got["items_dropped"] == 0
    wait_even(replica, primary)
    # A person can replay it.
    with replica.conn() as conn:
        text = b"".join(p.read_bytes() for p in files(primary, "quarantine-*"))
        conn.send(text)
        replies = [conn.read() for _ in quarantine(primary)]
        assert not [r for r in replies if isinstance(r, resp.Error)], replies
        conn.call("SELECT", "0")
        assert conn.call("BF.MEXISTS", "anew", "a", "b") == [1, 1]


def test_off_means_off(group):
    primary, replica, proxy = group.pair()
    before = add(primary, "key", "before", 10)
    part(primary, replica, proxy)
    old = add(primary, "key", "old", 50)
    heal(primary, replica)
    wait_even(replica, primary)
    assert missing(replica, "key", before) == []
    assert len(missing(replica, "key", old)) > 25
    assert set(stats(primary).values()) == {0}
    assert not files(primary, "heal-*") and not files(primary, "quarantine-*")


def test_a_log_without_changes_is_not_offered(group):
    primary, replica, proxy = group.pair(*ON)
    add(primary, "key", "before", 10)
    part(primary, replica, proxy)
    heal(primary, replica)
    wait_even(replica, primary)
    assert set(stats(primary).values()) == {0}


def test_more_than_the_log_may_keep_is_lost_and_said(group):
    primary, replica, proxy = group.pair(
        *ON, *NO_JOURNAL, "--merge-log-max-bytes", "64kb",
        "--repl-backlog-size", "64kb")
    with primary.conn() as conn:
        conn.call("BF.RESERVE", "key", "0.001", 200000)
    part(primary, replica, proxy)
    add(primary, "key", "old", 20000)
    heal(primary, replica)
    wait_even(replica, primary)
    assert stats(primary)["lost_bytes"] > 500000
    assert stats(primary)["offers"] == 0
    assert b"lost changes that the primary does not have" in primary.log()


@pytest.mark.parametrize("restarts", (False, True))
def test_a_primary_with_another_log_is_offered_nothing(group, restarts):
    """What no replica has acknowledged is lost; after a start, nobody knows how much
    that is."""
    primary, replica, proxy = group.pair(*ON, *JOURNAL)
    add(primary, "key", "both", 10)
    wait_even(primary, replica)
    wait_until(lambda: "offset=%d," % replicas.offset(primary) in
               info(primary)["slave0"], 10, "the replica has acknowledged all")
    wait_until(lambda: any(b"replicas yes" in path.read_bytes() for path in
                           files(primary, "replication.state")), 10,
               "it is on the disk that there are replicas")
    proxy.up = False
    proxy.cut()
    add(primary, "key", "alone", 10)
    if restarts:
        primary.crash()
        primary.restart()
    heal(primary, group.node())
    said = b"may lose changes" if restarts else b"lost changes"
    assert said + b" that the primary does not have" in primary.log()
    assert b"the primary has no part of this log" in primary.log()
    assert (stats(primary)["lost_bytes"] > 0) != restarts
    assert stats(primary)["offers"] == 0


@pytest.mark.parametrize("role", ("primary", "replica"))
def test_after_a_crash_the_journal_has_it(group, role):
    """The old primary is killed and restarted before it is demoted; or after that,
    before it reaches the new primary."""
    primary, replica, proxy = group.pair(*ON, *JOURNAL, "--appendfsync", "always")
    with primary.conn() as conn:
        conn.call("BF.RESERVE", "key", "0.0001", 200000)
    part(primary, replica, proxy)
    old = add(primary, "key", "old", 5000)
    if role == "replica":
        heal(primary, ("127.0.0.1", 1), wait=False)
    primary.crash()
    primary.restart()
    if role == "primary":
        old += add(primary, "key", "later", 500)
    new = add(replica, "key", "new", 500)
    heal(primary, replica)
    wait_merged(primary)
    assert b"from=journal" in primary.log()
    assert missing(replica, "key", old + new) == []
    wait_even(replica, primary)
    assert stats(primary)["lost_bytes"] == 0


def test_a_full_quarantine_counts_what_it_drops(group):
    primary, replica, proxy = group.pair(
        *ON, "--merge-quarantine-max-bytes", 1000)
    with primary.conn() as conn:
        conn.call("BF.RESERVE", "key", "0.001", 20000)
        conn.call("BF.ADD", "gone", "first")
        conn.call("BF.RESERVE", "anew", "0.001", 20000)
    part(primary, replica, proxy)
    old = add(primary, "key", "old", 100)
    add(primary, "anew", "old", 3000)
    with replica.conn() as conn:
        conn.call("DEL", "anew")
        conn.call("BF.ADD", "anew", "other")
    heal(primary, replica)
    wait_merged(primary)
    assert missing(replica, "key", old) == []
    got = stats(primary)
    assert sum(p.stat().st_size for p in files(primary, "quarantine-*")) <= 1000
    assert got["items_dropped"] > 2900
    assert 2990 <= got["items_quarantined"] + got["items_dropped"] <= 3000


@pytest.mark.parametrize("size", (0, 10, 1000))
def test_a_damaged_file_is_counted_when_it_is_set_aside(group, size):
    """Its new name is taken at first."""
    primary, replica = group.node(*ON), group.node(*ON)
    path = folder(replica) / ("heal-%s-1.log" % ("0" * 40))
    path.write_bytes(b"x" * size)
    aside = path.with_name(path.name + ".damaged")
    aside.mkdir()
    follow(replica, primary)
    wait_until(lambda: replica.log().count(b"cannot set a damaged file aside") > 1,
               30, "it tries again")
    assert stats(replica)["lost_bytes"] == 0
    aside.rmdir()
    wait_until(aside.is_file, 30, "it is set aside")
    wait_until(lambda: b"a file of saved adds is damaged" in replica.log(), 10,
               "the log says so")
    assert stats(replica)["lost_bytes"] == size
    assert replica.log().count(b"a file of saved adds is damaged") == 1


def refuses_adds(server, yes):
    """Makes the server answer adds with an error that passes."""
    with server.conn() as conn:
        conn.call("CONFIG", "SET", "min-replicas-to-write", 2 if yes else 0)


def test_an_offer_waits_for_a_primary_that_takes_writes(group):
    primary, replica, proxy = group.pair(*ON)
    add(primary, "key", "before", 10)
    part(primary, replica, proxy)
    old = add(primary, "key", "old", 50)
    refuses_adds(replica, True)
    heal(primary, replica)
    wait_until(lambda: b"the primary adds nothing now" in primary.log(), 30,
               "an offer was refused for now")
    assert files(primary, "heal-*") and stats(primary)["items_added"] == 0
    refuses_adds(replica, False)
    wait_merged(primary)
    assert missing(replica, "key", old) == []


@pytest.mark.parametrize("how", ("remove", "move"))
def test_saved_adds_outlive_their_directory(group, tmp_path, how):
    """Dir is lost while an offer waits, and the server is killed after that."""
    data = tmp_path / "data"
    data.mkdir()
    primary = group.node(*ON, *JOURNAL, "--dir", data)
    replica = group.node(*ON, *JOURNAL)
    proxy = group.proxy(primary)
    follow(replica, proxy)
    wait_until(lambda: info(primary, "stats")["sync_full"] == "1", 30, "a replica")
    add(primary, "key", "before", 10)
    part(primary, replica, proxy)
    old = add(primary, "key", "old", 5000)
    refuses_adds(replica, True)
    heal(primary, replica)
    wait_until(lambda: b"the primary adds nothing now" in primary.log(), 30,
               "an offer was refused for now")
    name = next(data.glob("heal-*.log")).name
    if how == "remove":
        shutil.rmtree(data, ignore_errors=True)  # it writes meanwhile
    else:
        data.rename(tmp_path / "moved")
    wait_until((data / name).exists, 30, "it is written again")
    wait_until((data / "replication.state").exists, 30, "the role")
    primary.crash()
    primary.restart()
    refuses_adds(replica, False)
    wait_until(lambda: stats(primary)["offers"] > 0 and
               not list(data.glob("heal-*.log")), 60, "all adds are offered")
    assert missing(replica, "key", old) == []


@pytest.mark.parametrize("dies", ("old", "new"))
def test_a_crash_during_the_offer_begins_it_again(group, dies):
    primary, replica, proxy = group.pair(*ON, *JOURNAL, "--appendfsync", "always")
    add(primary, "key", "before", 10)
    with primary.conn() as conn:
        conn.call("BF.ADD", "anew", "first")
    part(primary, replica, proxy)
    old = add(primary, "key", "old", 50)
    add(primary, "anew", "old", 5)
    with replica.conn() as conn:
        conn.call("DEL", "anew")
        conn.call("BF.ADD", "anew", "other")
    refuses_adds(replica, True)
    heal(primary, replica)
    wait_until(lambda: b"the primary adds nothing now" in primary.log(), 30,
               "an offer was refused for now")
    victim = primary if dies == "old" else replica
    victim.crash()
    victim.restart()
    refuses_adds(replica, False)
    wait_merged(primary)
    assert missing(replica, "key", old) == []
    lines = [" ".join(words) for words in quarantine(primary)]
    assert lines == ["SELECT 0", "BF.MADD anew " +
                     " ".join("old:%d" % i for i in range(5))]


SAVES = ["snapshot", "snapshot.tmp", "other", "dir"]


@pytest.mark.parametrize("call", ("create", "write", "sync", "rename"))
def test_a_crash_while_it_saves_begins_that_again(group, tmp_path, call):
    """The old primary is killed before each such call, until it has followed: of the
    copy of its log, the adds to offer, the quarantine, and the data that it adopts."""
    primary, replica, proxy = group.pair(*ON, *JOURNAL, "--appendfsync", "always",
                                         folder=tmp_path)
    items, kills = [], 0
    while kills == len(items):
        add(primary, "key", "before", 10)
        with primary.conn() as conn:
            conn.call("BF.ADD", "anew", "first")
        part(primary, replica, proxy)
        items.append(add(primary, "key", "old-%d" % kills, 50))
        add(primary, "anew", "old-%d" % kills, 5)
        with replica.conn() as conn:
            conn.call("DEL", "anew")
            conn.call("BF.ADD", "anew", "other")
        primary.shim.arm(0, "kill-before", [call], SAVES, nth=kills + 1)
        with contextlib.suppress(*slots.GONE):
            heal(primary, replica, wait=False)
        wait_until(lambda: not primary.runs() or is_merged(primary), 60,
                   "it is killed, or all adds are offered")
        primary.shim.disarm(0)
        if is_killed(primary):      # perhaps a moment ago
            kills += 1
            primary.restart()
            heal(primary, replica, wait=False)
            wait_merged(primary, offers=0)
        got = stats(primary)
        assert got["lost_bytes"] == got["items_dropped"] == 0
        assert missing(replica, "key", sum(items, [])) == []
        set_aside = {word for words in quarantine(primary) for word in words}
        assert {"old-%d:%d" % (at, i) for at in range(len(items))
                for i in range(5)} <= set_aside
        lead(primary)
        proxy.up = True
        follow(replica, proxy)
    print("%s: killed %d times" % (call, kills))
    assert kills > 0


@pytest.mark.slow
@pytest.mark.skipif(bool(servers.oracle_missing()), reason="there is no Sentinel")
def test_under_sentinel(group):
    """The Sentinels and the replica lose the primary, clients do not."""
    primary, replica, proxy = group.pair(*ON)
    add(primary, "key", "before", 10)
    wait_even(primary, replica)
    watch = Watch(proxy, [replica], periods=failover.SHORT, down_after_ms=1500,
                  failover_timeout_ms=1000)
    try:
        proxy.up = False
        proxy.cut()
        old = add(primary, "key", "old", 40)
        watch.wait_other(proxy.address)
        wait_until(lambda: info(replica)["role"] == "master", 30, "it leads")
        old += add(primary, "key", "older", 20)
        new = add(replica, "key", "new", 20)
        proxy.up = True
        wait_until(lambda: info(primary)["role"] == "slave", 60,
                   "the Sentinels demote the old primary")
        wait_merged(primary)
        assert missing(replica, "key", old + new) == []
        wait_even(replica, primary)
    finally:
        watch.stop()


@pytest.mark.slow
@pytest.mark.skipif(bool(cluster.missing("redis") or cluster_net.missing()),
                    reason="there is no cluster with links that can be cut")
@pytest.mark.parametrize("how", ("FORCE", "TAKEOVER"))
def test_in_a_cluster(how):
    """A primary and its daemon are cut off from all others, and its replica is
    promoted at once. Until the primary's node notices, both daemons may serve."""
    with cluster.Cluster("redis", network=cluster_net.Network(),
                         daemon_options=ON) as made:
        made.wait_settled()
        old = made.pairs[0]
        new = made.replicas_of(old)[0]
        slot = made.view()[old.node.id].ranges[0][0]
        key = slots.key_in(slot)
        # One layer: what is a false positive here will be one on the new primary.
        with old.daemon.conn() as conn:
            conn.call("BF.RESERVE", key, "0.0001", 200000)
        add(old.daemon, key, "before", 10)
        wait_even(old.daemon, new.daemon)
        made.network.cut([old.place], [p.place for p in made.pairs if p != old])
        acknowledged = []
        new.node.ask("CLUSTER", "FAILOVER", how)
        with old.daemon.conn() as conn:
            for i in range(20000):
                if conn.call("BF.ADD", key, "old:%d" % i) not in (0, 1):
                    break
                acknowledged.append("old:%d" % i)
        assert acknowledged
        with new.daemon.conn() as conn:
            wait_until(lambda: conn.call("BF.ADD", key, "new") in (0, 1), 60,
                       "the new one serves")
        made.heal()
        made.wait_settled()
        wait_merged(old.daemon)
        assert missing(new.daemon, key, [*acknowledged, "new"]) == []


def rewrite(server):
    with server.conn() as conn:
        before = int(info(server, "persistence")["aof_rewrites"])
        conn.call("BGREWRITEAOF")
        wait_until(lambda: int(info(server, "persistence")["aof_rewrites"]) > before,
                   30, "the journal is rewritten")


SMALL_LOG = ("--merge-log-max-bytes", "64kb", "--repl-backlog-size", "64kb")


@pytest.mark.parametrize("how", ("restart", "small log", "both"))
def test_a_rewrite_keeps_what_a_heal_needs(group, how):
    """Several rewrites, and adds before, between and after them."""
    options = SMALL_LOG if how != "restart" else ()
    primary, replica, proxy = group.pair(*ON, *JOURNAL, *options)
    with primary.conn() as conn:
        conn.call("BF.RESERVE", "key", "0.0001", 200000)
    add(primary, "key", "before", 100)
    part(primary, replica, proxy)
    old = add(primary, "key", "old", 5000)
    if how != "small log":
        primary.crash()
        primary.restart()
    for turn in range(3):
        rewrite(primary)
        old += add(primary, "key", "old%d" % turn, 2000)
    if how == "both":
        primary.crash()
        primary.restart()
        old += add(primary, "key", "last", 1000)
        rewrite(primary)
    heal(primary, replica)
    wait_merged(primary)
    assert missing(replica, "key", old) == []
    assert stats(primary)["lost_bytes"] == 0
    wait_even(replica, primary)
    # Nobody needs it any more.
    rewrite(primary)
    wait_until(lambda: not files(primary, "kept"), 10, "nothing is kept")
    assert len(files(primary, "incr-*")) == 1


def test_what_a_rewrite_does_not_keep_is_counted_for_ever(group):
    """The limit has room for the second part of the adds only, and these arrive."""
    primary, replica, proxy = group.pair(*ON, *JOURNAL, *SMALL_LOG,
                                         "--merge-journal-max-bytes", "64kb")
    with primary.conn() as conn:
        conn.call("BF.RESERVE", "key", "0.0001", 200000)
    part(primary, replica, proxy)
    add(primary, "key", "old", 20000)
    rewrite(primary)
    kept = add(primary, "key", "kept", 1000)
    rewrite(primary)
    heal(primary, replica)
    wait_merged(primary)
    assert missing(replica, "key", kept) == []
    lost = stats(primary)["lost_bytes"]
    assert lost > 500000
    assert b"merge-journal-max-bytes" in primary.log()
    wait_until(lambda: files(primary, "merge.state"), 10, "it is on the disk")
    primary.crash()
    primary.restart()
    assert stats(primary)["lost_bytes"] == lost


def test_a_server_whose_replicas_follow_keeps_nothing(group):
    primary, replica, _ = group.pair(*ON, *JOURNAL)
    add(primary, "key", "a", 1000)
    wait_even(primary, replica)
    wait_until(lambda: "offset=%d," % replicas.offset(primary) in
               info(primary)["slave0"], 10, "the replica has acknowledged all")
    for server in (primary, replica):
        # A rewrite goes by what was acknowledged at the last tick before it.
        def keeps_nothing():
            rewrite(server)
            return len(files(server, "incr-*")) == 1 and not files(server, "kept")
        wait_until(keeps_nothing, 10, "a rewrite keeps nothing")
