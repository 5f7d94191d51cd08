# SPDX-License-Identifier: BSD-3-Clause
#
# Runs every command line of the README, of packaging/doc and of the man pages in its
# own namespace, and compares the output with the printed one. ELSEWHERE lists the lines
# that cannot run there, and what runs them instead.

import re
import shlex
import time

import pytest

from lib import documents, servers

pytestmark = [
    pytest.mark.skipif(servers.sanitized(), reason="the release build does it"),
    pytest.mark.skipif(documents.missing() is not None,
                       reason="%s" % documents.missing())]

# A server in the state after the text before the block.
SERVER = ["systemctl start bloomery",
          "redis-cli -p 7379 BF.ADD usernames alice"]
SECOND = ["mkdir -p /var/lib/second",
          "bloomery-server --dir /var/lib/second --port 7380"]
BACKUP = ["redis-cli -p 7379 SAVE",
          "bloomery-check backup /var/lib/bloomery /var/backups/bloomery"]

# A redis-server as the source of a move.
SOURCE = SERVER + [
    "mkdir -p /var/lib/redis",
    "build/redis/usr/bin/redis-server --port 6379 --dir /var/lib/redis "
    "--appendonly yes --daemonize yes",
    "for i in $(seq 500); do redis-cli -p 6379 PING && break; sleep 0.05; done",
    "redis-cli -p 6379 SET a value"]

# A second server on the port of the examples' RedisBloom.
BACK = ["systemctl start bloomery",
        "redis-cli -p 7379 CONFIG SET bloom-layout redisbloom",
        "redis-cli -p 7379 BF.ADD usernames alice",
        "redis-cli -p 7379 SAVE",
        "mkdir -p /var/lib/second",
        "bloomery-server --dir /var/lib/second --port 6379"]

# A server with an ACL file.
USERS = ["touch /var/lib/bloomery/users.acl",
         "bloomery-server --aclfile /var/lib/bloomery/users.acl"]

# Three nodes of a Redis cluster, and a server beside each.
NODES = ["for n in 7000 7001 7002; do mkdir /var/lib/$n; "
         "build/redis/usr/bin/redis-server --port $n --dir /var/lib/$n "
         "--cluster-enabled yes --daemonize yes --save ''; done",
         "redis-cli --cluster create 127.0.0.1:7000 127.0.0.1:7001 127.0.0.1:7002 "
         "--cluster-yes"]
SIDECARS = ["mkdir /var/lib/8000 /var/lib/8001 /var/lib/8002"] + \
    ["bloomery-server --port %d --sidecar-of 127.0.0.1:%d --dir /var/lib/%d" %
     (port, port - 1000, port) for port in (8000, 8001, 8002)]

# Words of a block -> the state needed before it is typed.
BEFORE = {
    "--sidecar-of": NODES,
    "redis-cli -p 7000": NODES,
    "--tls-port": [],
    "ACL SAVE": USERS,
    "--ping conf": SERVER,
    "bloomery-load export": BACK,
    "make deps run": ["bloomery-server"],
    "examples/local.c": SERVER,
    "make library": [],
    "6379": SOURCE,
    "examples/send-new.c": ["make library"] + SERVER,
    "REPLICAOF 127": SERVER + SECOND,
    "# systemctl stop bloomery": SERVER + BACKUP,
    "truncate-to": SERVER + BACKUP,
    "cat --resp": SERVER + BACKUP + SECOND,
    "salvage": SERVER + ["systemctl stop bloomery"],
    "--port 7379 &": [],
    "conf/bloomery.conf": [],
}

# Pattern of a command line -> why it cannot run here, and what runs it.
ELSEWHERE = {
    r"make deps run.*": "installs packages; test_build.py runs make run",
    r"systemd-sysusers.*": "changes the users of the machine",
    r"systemctl edit .*": "opens an editor; no test runs it",
}

PAGES = ["README.md"] + sorted(
    str(page.relative_to(servers.TOP))
    for page in (servers.TOP / "packaging/doc").glob("*.md"))
BLOCKS = [(path, block) for path in PAGES
          for block in documents.readme(path)] + \
    [(name, block) for name in ("bloomery-check.1", "bloomery-load.1",
                             "bloomery-server.8")
     for block in documents.page(name)]


def at_noon(lines):
    """Uses a time that the journal reaches as the time of the examples."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 60))
    return [line.replace("2026-11-20T12:00:00Z", now) for line in lines]


def before(name, block):
    """Each example of commands.md works alone, on a server without keys."""
    if name == "packaging/doc/commands.md":
        return SERVER[:1]
    return next((lines for words, lines in BEFORE.items() if words in block),
                SERVER)


def here(block):
    """Returns the lines of a block that can run here."""
    return [(command, printed) for command, printed in documents.lines(block)
            if not any(re.fullmatch(p, command) for p in ELSEWHERE)]


def test_every_block_is_known():
    assert len(BLOCKS) >= 40 and {path for path, _ in BLOCKS} >= {
        "README.md", "packaging/doc/operating.md", "packaging/doc/security.md"}
    text = "".join(block for _, block in BLOCKS)
    assert not [words for words in BEFORE if words not in text]
    commands = [c for _, block in BLOCKS for c, _ in documents.lines(block)]
    for pattern in ELSEWHERE:
        assert any(re.fullmatch(pattern, c) for c in commands), pattern


def test_no_command_line_is_outside_of_these_blocks():
    for path in PAGES:
        text = (servers.TOP / path).read_text()
        kinds = set(re.findall(r"^```(.*)\n", text, re.M)[::2])
        assert kinds <= {"console", "python", "js", "go", "java", "yaml",
                         "ini"}, path


def patient(command, printed):
    """Figures of INFO follow what they count a moment later than a script asks."""
    if " INFO " not in command or not printed:
        return command
    return "for i in $(seq 100); do out=$(%s); [ \"$out\" = %s ] && break; " \
        "sleep 0.1; done; echo \"$out\"" % (
            command.split("#")[0], shlex.quote("\n".join(printed)))


@pytest.mark.parametrize(
    "name,block", BLOCKS,
    ids=["%s-%d" % (name, at) for at, (name, _) in enumerate(BLOCKS)])
def test_it_prints_the_documented_output(tmp_path, name, block):
    first, wanted = before(name, block), here(block)
    got = documents.type_in(tmp_path, at_noon(
        first + [patient(command, printed) for command, printed in wanted]))
    assert all(status == 0 for status, _ in got[:len(first)]), got
    for (command, printed), (status, out) in zip(wanted, got[len(first):]):
        assert status == 0, (command, out)
        # redis-cli has exit status 0 for an error reply.
        assert "(error)" not in out or printed, (command, out)
        if printed:
            assert out.split("\n")[:-1] == printed, command


def test_the_documented_user_of_the_nodes_is_enough(tmp_path):
    user = next(commands(block) for block in documents.readme("packaging/doc/cluster.md")
                if "ACL SETUSER" in block)
    lines = NODES + [line.replace("7000", port) for line in user
                     for port in ("7000", "7001", "7002")] + \
        [line + " --sidecar-user bloomery --sidecar-password password"
         if "--port" in line else line for line in SIDECARS] + \
        ["redis-cli -p %s ACL SETUSER default resetpass" % port
         for port in ("7000", "7001", "7002")] + \
        ["redis-cli -c -p 8000 BF.ADD users alice"]
    got = documents.type_in(tmp_path, lines)
    assert all(status == 0 for status, _ in got), list(zip(lines, got))
    assert got[-1][1] == "(integer) 1\n"


# ---- what is restored ----------------------------------------------------------

ASK = "redis-cli -p %d BF.MEXISTS k old saved late later"


def add(*items):
    return ["redis-cli -p 7379 BF.MADD k %s" % " ".join(items)]


def found(out):
    return [int(n) for n in re.findall(r"\(integer\) (\d)", out)]


def commands(block):
    return [command for command, _ in documents.lines(block)]


def test_the_recipes_restore_the_data(tmp_path):
    page = documents.readme("packaging/doc/operating.md")
    blocks = {words: next(commands(b) for b in page if words in b)
              for words in ("bloomery-check backup", "mv /var/lib/bloomery ",
                            "journal.before", "truncate-to")}
    noon = int(time.time()) + 8
    wait = ["while [ $(date +%%s) -lt %d ]; do sleep 0.05; done" % (noon + 1)]
    lines = ["systemctl start bloomery"] + add("old") + wait + \
        add("saved") + ["redis-cli -p 7379 SAVE"] + add("late") + \
        blocks["bloomery-check backup"] + add("later") + \
        blocks["mv /var/lib/bloomery "] + [ASK % 7379] + \
        blocks["journal.before"] + [ASK % 7379] + \
        blocks["truncate-to"] + [ASK % 7380]
    then = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(noon))
    got = documents.type_in(tmp_path, [
        line.replace("2026-11-20T12:00:00Z", then) for line in lines])
    assert all(status == 0 for status, _ in got), list(zip(lines, got))
    answers = [found(out) for line, (_, out) in zip(lines, got)
               if "MEXISTS" in line]
    assert answers == [[1, 1, 1, 0], [1, 1, 0, 0], [1, 0, 0, 0]]


def test_copied_and_salvaged_data_is_complete(tmp_path):
    blocks = documents.page("bloomery-check.1")
    salvage = next(commands(b) for b in blocks if "salvage" in b)
    copy = next(commands(b) for b in blocks if "cat --resp" in b)
    lines = ["systemctl start bloomery"] + add("old") + \
        ["redis-cli -p 7379 SAVE"] + add("saved") + SECOND + copy + \
        [ASK % 7380, "systemctl stop bloomery"] + salvage + [ASK % 7379]
    got = documents.type_in(tmp_path, lines)
    assert all(status == 0 for status, _ in got), list(zip(lines, got))
    assert [found(out) for line, (_, out) in zip(lines, got)
            if "MEXISTS" in line] == [[1, 1, 0, 0]] * 2
