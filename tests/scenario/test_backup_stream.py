# SPDX-License-Identifier: BSD-3-Clause
#
# A backup as one stream: `backup --tar PATH -` and `restore - DIR`. GNU tar reads it,
# a restored server is as it was, and an archive that was cut off, changed or made by
# somebody else is refused and leaves nothing behind.

import contextlib
import io
import os
import random
import subprocess
import tarfile
from pathlib import Path

import pytest

from lib import neighbour, servers
from test_backup import Writers, assert_holds, full_server, make_data
from test_check import check, digest


def program():
    return str(Path(servers.server_binary()).with_name("bloomery-check"))


def stream(*words, status=0):
    """Returns the archive, and what was said of it."""
    got = subprocess.run([program(), "backup", "--tar", *map(str, words), "-"],
                         capture_output=True, timeout=60 * servers.time_factor())
    assert got.returncode == status, (words, got.returncode, got.stderr)
    return got.stdout, got.stderr


def restore(archive, out, *words, status=0):
    got = subprocess.run([program(), "restore", *words, "-", str(out)], input=archive,
                         capture_output=True, timeout=60 * servers.time_factor())
    assert not servers.REPORTS.search(got.stderr), got.stderr
    assert got.returncode == status or status is None, (got.returncode, got.stderr)
    return got


def refused(archive, out, *reasons):
    got = restore(archive, out, status=None)
    assert got.returncode != 0, reasons
    assert not out.exists(), list(out.iterdir())
    assert any(reason in got.stderr for reason in reasons) or not reasons, got.stderr


def test_a_restored_stream_is_as_it_was(tmp_path, start_server):
    data, out, new = tmp_path / "data", tmp_path / "out", tmp_path / "new"
    with contextlib.closing(neighbour.Neighbour()) as node:
        server = full_server(start_server, data, node)
        check("backup", data, out)
        archive, said = stream(data)
        server.kill()
    assert said.startswith(b"intact: ") and b" filters\n" in said
    new.mkdir()
    got = restore(archive, new)
    assert got.stdout.startswith(b"intact: ") and said.startswith(got.stdout)
    check("restore", out, tmp_path / "other")
    restore(stream(out)[0], tmp_path / "same")
    subprocess.run(["diff", "-r", str(tmp_path / "same"), str(tmp_path / "other")], check=True)
    assert (new / "hash-secret").stat().st_mode & 0o777 == 0o600
    server = start_server("--dir", new, "--aclfile", new / "users.acl",
                          "--requirepass", "pw")
    with server.conn() as conn:
        assert conn.call("AUTH", "pw") == b"OK"
        assert conn.call("BF.EXISTS", "keyed", "x") == 1
        assert conn.call("AUTH", "eve", "secret") == b"OK"


def test_gnu_tar_reads_it(tmp_path, start_server):
    name = "s" * 120
    data, out = tmp_path / "data", tmp_path / "out"
    data.mkdir()
    out.mkdir()
    server = start_server("--dir", data, "--appendonly", "yes", "--dbfilename", name)
    with server.conn() as conn:
        conn.call("BF.ADD", "k", "x")
        conn.call("SAVE")
    archive, _ = stream(data)
    subprocess.run(["tar", "-C", str(out), "-x"], input=archive, check=True)
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "backup.sums"],
                   cwd=out, check=True)
    assert (out / name).exists() and (out / "hash-secret").exists()
    check("verify", out)
    restore(archive, tmp_path / "new")
    assert (tmp_path / "new" / name).exists()
    assert not (tmp_path / "new/backup.sums").exists()


def test_a_stream_has_every_acknowledged_add(tmp_path, start_server):
    data = tmp_path / "data"
    data.mkdir()
    server = start_server("--dir", data, "--appendonly", "yes",
                          "--bf.bloom-fp-rate", "1e-9")
    archives = []
    with Writers(server, 1) as writers:
        for _ in range(3):
            want = min(writers.done) + 200
            servers.wait_until(lambda: min(writers.done) > want, 60, "writes")
            done = list(writers.done)
            archives.append((stream(data)[0], done))
    for i, (archive, done) in enumerate(archives):
        restore(archive, tmp_path / str(i))
        assert_holds(start_server, tmp_path / str(i), done)


@pytest.fixture
def archive(tmp_path, start_server):
    make_data(start_server, tmp_path / "data").stop()
    return stream(tmp_path / "data")[0]


def test_a_stream_that_was_cut_off_leaves_nothing(tmp_path, archive):
    seed = int(os.environ.get("SEED") or 0) or random.randrange(1 << 32)
    print("SEED=%d" % seed)
    rng = random.Random(seed)
    cuts = {0, 1, 511, 512, len(archive) - 1, len(archive) - 512,
            *(rng.randrange(len(archive)) for _ in range(30))}
    for cut in cuts:
        refused(archive[:cut], tmp_path / "new", b"ends too early")
    refused(archive + b"x", tmp_path / "new", b"ends too early")
    refused(archive + b"x" * 512, tmp_path / "new", b"something follows")
    restore(archive + bytes(9 * 512), tmp_path / "new")     # GNU tar's blocks of 20


def test_a_stream_that_was_damaged_leaves_nothing(tmp_path, archive):
    seed = int(os.environ.get("SEED") or 0) or random.randrange(1 << 32)
    print("SEED=%d" % seed)
    rng = random.Random(seed)
    for _ in range(60):
        at = rng.randrange(len(archive))
        wrong = bytearray(archive)
        wrong[at] ^= 1 << rng.randrange(8)
        refused(bytes(wrong), tmp_path / "new")


def changed(archive, change):
    """Returns the archive after `change(entries)`, a list of TarInfo and bytes."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        entries = [(info, tar.extractfile(info).read() if info.isfile() else None)
                   for info in tar]
    change(entries)
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for info, contents in entries:
            tar.addfile(info, contents and io.BytesIO(contents))
    return made.getvalue()


def file(name, contents=b"x", kind=tarfile.REGTYPE, to=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, to
    info.size = len(contents) if kind == tarfile.REGTYPE else 0
    return info, contents


@pytest.mark.parametrize("entry", [
    file("../../evil"), file("/tmp/evil"), file("a/b/c"), file("journal/../../evil"),
    file("lock"), file("evil.tmp"), file("journal/evil"), file("journal/.."),
    file("hash-secrets/0123456789abcdef"), file("snapshot"), file(".hidden"),
    file("hash-secret", kind=tarfile.SYMTYPE, to="/etc/passwd"),
    file("hash-secret", kind=tarfile.LNKTYPE, to="journal/manifest"),
    file("hash-secret", kind=tarfile.FIFOTYPE),
    file("other", kind=tarfile.DIRTYPE), file("..", kind=tarfile.DIRTYPE),
    file("journal/manifest")], ids=lambda entry: "%s %s" % (
        entry[0].name, entry[0].type.decode()))
def test_a_foreign_entry_is_refused(tmp_path, archive, entry):
    wrong = changed(archive, lambda entries: entries.insert(len(entries) - 1, entry))
    refused(wrong, tmp_path / "new", b"is no backup", b"is no archive",
            b"exists already")
    assert not list(tmp_path.parent.glob("evil")) and not Path("/tmp/evil").exists()


def test_sizes_are_lies_until_the_bytes_have_come(tmp_path, archive):
    def large(name, size):
        info = tarfile.TarInfo(name)
        info.size = size
        return info.tobuf(tarfile.PAX_FORMAT)
    refused(large("hash-secret", 1 << 40), tmp_path / "new", b"too large")
    refused(large("bloomery.snapshot", 1 << 62), tmp_path / "new", b"ends too early")
    refused(large("bloomery.snapshot", 1 << 33) + archive, tmp_path / "new",
            b"ends too early")


def test_other_streams_are_refused(tmp_path, archive):
    refused(b"", tmp_path / "new", b"ends too early")
    refused(bytes(1024), tmp_path / "new", b"ends too early")
    refused(random.Random(1).randbytes(4096), tmp_path / "new", b"is no archive")
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        names = tar.getnames()
    assert names[-1] == "backup.sums" and "journal/manifest" in names
    only = changed(archive, lambda entries: entries.__delitem__(
        slice(0, len(entries) - 1)))
    refused(only, tmp_path / "new", b"its sum")
    made = changed(archive, lambda entries: entries.__delitem__(
        slice(0, len(entries))))
    refused(made, tmp_path / "new", b"ends too early")


def test_a_directory_with_files_is_not_touched(tmp_path, archive):
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine").touch()
    got = restore(archive, tmp_path / "full", status=2)
    assert b"is not empty" in got.stderr
    assert [p.name for p in (tmp_path / "full").iterdir()] == ["mine"]
    (tmp_path / "empty").mkdir()
    restore(archive[:-2048], tmp_path / "empty", status=1)
    assert not list((tmp_path / "empty").iterdir())


def test_damaged_data_makes_no_whole_stream(tmp_path, start_server):
    make_data(start_server, tmp_path / "data").stop()
    snapshot = tmp_path / "data/bloomery.snapshot"
    wrong = bytearray(snapshot.read_bytes())
    wrong[len(wrong) // 2] ^= 1
    snapshot.write_bytes(wrong)
    archive, said = stream(tmp_path / "data", status=1)
    assert said.startswith(b"damaged: ")
    refused(archive, tmp_path / "new", b"ends too early")


def test_a_stream_without_secrets_has_none(tmp_path, start_server):
    data = tmp_path / "data"
    with contextlib.closing(neighbour.Neighbour()) as node:
        server = full_server(start_server, data, node)
        secret = (data / "hash-secret").read_bytes().strip()
        archive, _ = stream("--without-secrets", data)
        server.kill()
    assert secret not in archive and b"requirepass" not in archive
    assert b"users.acl" not in archive and b"hash-secrets" not in archive


def test_the_command_line_says_what_is_missing(tmp_path, archive):
    assert archive
    for words in (("backup", "--tar", tmp_path / "data", tmp_path / "new"),
                  ("backup", tmp_path / "data", "-"),
                  ("backup", "--tar", tmp_path / "data/bloomery.snapshot", "-")):
        check(*words, status=2)
    assert not (tmp_path / "new").exists() and not Path("-").exists()
