# SPDX-License-Identifier: BSD-3-Clause
#
# What installs the server: that packages and container agree with the sources and with
# each other. No container engine runs here. So their files are read, and the commands
# in them run against a server of the tests. (test_kubernetes.py has the manifests.)

import json
import os
import re
import shutil
import subprocess

import pytest
import yaml

from lib import servers
from lib.containers import Running

pytestmark = pytest.mark.skipif(servers.sanitized(), reason="the release build does it")

TOP = servers.TOP
PACKAGING = TOP / "packaging"
MAKEFILE = (TOP / "Makefile").read_text()
VERSION = (TOP / "VERSION").read_text().strip()
COMPOSE = PACKAGING / "container/compose.yaml"


def server(*words, env=None):
    got = subprocess.run([servers.server_binary(), *map(str, words)], text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                         env=env)
    return got.returncode, got.stdout.strip()


# ---- the version -----------------------------------------------------------------

def test_the_version_is_the_same_everywhere():
    assert re.fullmatch(r"\d+\.\d+\.\d+", VERSION)
    stamp = (TOP / "build/include/bloomery_version.h").read_text()
    built = re.fullmatch(r'#define BLOOMERY_VERSION "(\S+)"\n', stamp).group(1)
    assert re.fullmatch(re.escape(VERSION) + r"(\+\d+\.g[0-9a-f]{7})?", built)
    for words in ([], ["/nowhere.conf"], ["-"]):
        assert server(*words, "--version")[1].splitlines()[0] == "bloomery-server " + built, \
            "the server is older than build/include: run make"
        assert server(*words, "--help")[1].startswith("Usage: bloomery-server ")
    changes = (TOP / "CHANGELOG.md").read_text()
    first = re.search(r"^## (\S+) \((\d{4}-\d\d-\d\d|unreleased)\)$", changes, re.M)
    assert first.group(1) == VERSION
    spec = (PACKAGING / "rpm/bloomery.spec").read_text()
    assert re.search(r"^Version: +(\S+)$", spec, re.M).group(1) == "%{bloomery_version}"
    assert "-D 'bloomery_version $(VERSION)'" in MAKEFILE
    for manifest in [*(PACKAGING / "kubernetes").glob("*.yaml"), COMPOSE]:
        assert re.findall(r"/bloomery:(\S+)$", manifest.read_text(), re.M) == [VERSION]
    symbols = (PACKAGING / "debian/libbloomery1.symbols").read_text()
    since = {tuple(map(int, v.split("."))) for v in
             re.findall(r"@BLOOMERY_1 (\S+)$", symbols, re.M)}
    major, minor, patch = map(int, VERSION.split("."))
    coming = "\n## Unreleased\n" in changes
    assert max(since) <= ((major, minor + 1, 0) if coming else (major, minor, patch))


class Sources:
    """A clone in which the version may change."""

    def __init__(self, folder):
        self.folder = folder
        self.git("init", "-q", "-b", "main")
        (folder / "packaging/release").mkdir(parents=True)
        shutil.copy(PACKAGING / "release/version", folder / "packaging/release")

    def git(self, *words):
        return subprocess.run(["git", "-C", self.folder, "-c", "user.name=a", "-c",
                               "user.email=a@example.org", *words], check=True, text=True,
                              capture_output=True).stdout

    def commit(self, version=None):
        if version is not None:
            (self.folder / "VERSION").write_text(version + "\n")
        self.git("add", ".")
        self.git("commit", "-q", "--allow-empty", "-m", "a change")
        return ".g" + self.git("rev-parse", "HEAD")[:7]


def version_of(folder):
    return subprocess.run([folder / "packaging/release/version"], check=True, text=True,
                          capture_output=True).stdout.strip()


def test_the_version_counts_commits_since_it_changed(tmp_path):
    (tmp_path / "clone").mkdir()
    sources = Sources(tmp_path / "clone")
    seen = []
    for version, count in (("1.0.0", 0), (None, 1), (None, 2), ("1.1.0", 0), (None, 1)):
        mark = sources.commit(version)
        seen.append(version_of(sources.folder))
        base = (sources.folder / "VERSION").read_text().strip()
        assert seen[-1] == base + ("+%d%s" % (count, mark) if count else "")
    for older, newer in zip(seen, seen[1:]):
        subprocess.run(["dpkg", "--compare-versions", older, "lt", newer], check=True)

    # A clone of one commit does not know the number, an exported one not the commit.
    shallow = tmp_path / "shallow"
    subprocess.run(["git", "clone", "-q", "--depth", "1", "file://%s" % sources.folder, shallow],
                   check=True)
    assert version_of(shallow) == "1.1.0+0" + mark
    shutil.rmtree(shallow / ".git")
    assert version_of(shallow) == "1.1.0"
    (shallow / "VERSION").write_text(seen[-1] + "\n")
    assert version_of(shallow) == seen[-1]


def test_the_debian_changelog_has_all_points():
    script = PACKAGING / "debian/changelog.awk"
    got = subprocess.run(["awk", "-v", "release=" + VERSION,
                          "-v", "now=Tue, 01 Dec 2026 00:00:00 +0000", "-f",
                          script, TOP / "CHANGELOG.md"], text=True,
                         capture_output=True, check=True).stdout
    changes = (TOP / "CHANGELOG.md").read_text()
    points = re.findall(r"^- ", changes, re.M)
    releases = re.findall(r"^## \d", changes, re.M)
    assert got.startswith("bloomery (%s) unstable; urgency=medium\n" % VERSION)
    assert len(re.findall(r"^  \* ", got, re.M)) == len(points) > 50
    assert len(re.findall(r"^ -- .*  \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d \+0000$",
                          got, re.M)) == len(releases)
    assert max(map(len, got.splitlines())) <= 80 and "](" not in got


# ---- what is installed -----------------------------------------------------------

def dry_install():
    return subprocess.run(["make", "-n", "install", "DESTDIR=/out", "PREFIX=/usr"],
                          cwd=TOP, text=True, capture_output=True, check=True,
                          env={k: v for k, v in os.environ.items()
                               if not k.startswith("MAKE")}).stdout


def installed():
    """The places below PREFIX of all installed files."""
    dry = dry_install()
    files = re.findall(r"install -D -m \d+ \S+ /out(/\S+)", dry)
    links = re.findall(r"ln -sf \S+ /out(/\S+)", dry)
    return set(files + links) | {"/etc/bloomery/bloomery.conf"}


def covers(pattern, path):
    pattern = re.escape(pattern).replace(r"\*", "[^/]*")
    return re.match(pattern + "(/|$)", path) is not None


def debian_place(path):
    """Where debian/rules puts an installed file."""
    for old, new in (("/usr/lib/systemd", "/lib/systemd"),
                     ("/zsh/site-functions", "/zsh/vendor-completions"),
                     ("/usr/lib/libbloomery", "/usr/lib/x/libbloomery"),
                     ("/usr/lib/pkgconfig", "/usr/lib/x/pkgconfig")):
        path = path.replace(old, new)
    return path


def test_every_installed_file_is_in_one_debian_package():
    lists = {f.stem: f.read_text().split()
             for f in (PACKAGING / "debian").glob("*.install")}
    assert len(lists) == 6
    for path in map(debian_place, installed()):
        found = [name for name, patterns in lists.items()
                 if any(covers("/" + p, path) for p in patterns)]
        assert len(found) == 1, (path, found)


RPM = {"_bindir": "/usr/bin", "_sysconfdir": "/etc", "_mandir": "/usr/share/man",
       "_datadir": "/usr/share", "_docdir": "/usr/share/doc", "_libdir": "/usr/lib", "_includedir": "/usr/include",
       "_unitdir": "/usr/lib/systemd/system", "_sysusersdir": "/usr/lib/sysusers.d",
       "_tmpfilesdir": "/usr/lib/tmpfiles.d"}


def test_every_installed_file_is_in_one_rpm():
    spec = (PACKAGING / "rpm/bloomery.spec").read_text()
    spec = re.sub(r"%\{(_\w+)\}", lambda m: RPM[m.group(1)], spec[spec.index("%files"):])
    parts = re.findall(r"^%files (\w+)\n(.*?)(?=^%files|^%changelog)", spec, re.M | re.S)
    assert [name for name, _ in parts] == ["server", "tools", "libs", "devel"]
    lists = {name: re.findall(r"(?:^|\) )(/\S+)$", text, re.M) for name, text in parts}
    for path in installed():
        found = [name for name, patterns in lists.items()
                 if any(covers(p, path) for p in patterns)]
        assert len(found) == 1, (path, found)


# ---- the container ---------------------------------------------------------------

def instructions():
    """The instructions of the Containerfile, as (name, text)."""
    text = (PACKAGING / "container/Containerfile").read_text()
    text = re.sub(r"^#.*\n", "", text, flags=re.M).replace("\\\n", " ")
    return [tuple(line.split(None, 1)) for line in text.splitlines() if line.strip()]


def stages():
    """The instructions of each stage."""
    found = []
    for name, text in instructions():
        if name == "FROM":
            found.append([])
        found[-1].append((name, text))
    return found


def one(stage, name):
    found = [text for n, text in stage if n == name]
    assert len(found) == 1, (name, found)
    return found[0]


def apt(stage):
    text = next(t for n, t in stage if n == "RUN" and "apt-get install" in t)
    return set(re.search(r"--no-install-recommends ([^&]*)", text).group(1).split())


def test_the_container_has_what_the_build_and_the_server_need():
    build, final = stages()
    wanted = re.search(r"^DEPS_BUILD := (.*?)[^\\]\n", MAKEFILE.replace("\\\n", " ") + "\n",
                       re.M).group(0).split()[2:]
    assert apt(build) == set(wanted) | {"make"}
    libs = subprocess.run(["ldd", servers.server_binary()], text=True,
                          capture_output=True, check=True).stdout
    names = {re.match(r"lib(uv|hiredis|xxhash|inih|ssl|jemalloc)", n).group(0)
             for n in re.findall(r"^\s(lib\S+) =>", libs, re.M)
             if re.match(r"lib(uv|hiredis|xxhash|inih|ssl|jemalloc)", n)}
    assert {re.match(r"lib[a-z]+", p).group(0) for p in apt(final)} == names


def test_the_container_copies_what_is_installed():
    copied = [word for name, text in stages()[0] if name == "COPY"
              for word in text.split()[:-1]]
    sources = set(re.findall(r"install -D -m \d+ ((?!build/|/dev/null)\S+) /out",
                             dry_install()))
    assert len(sources) > 40
    for source in sources:
        assert any(covers(word, source) for word in copied), source


def test_every_copied_path_exists():
    build, final = stages()
    assert [text for name, text in build if name == "FROM"][0].endswith(" AS build")
    there = installed()
    for name, text in build + final:
        if name != "COPY":
            continue
        words = text.split()
        if words[0] == "--from=build":
            assert {w.replace("/out", "", 1) for w in words[1:-1]} <= there, text
        else:
            assert all((TOP / w).exists() for w in words[:-1]), text
    copied = {word for n, t in build if n == "COPY" for word in t.split()[:-1]}
    used = set(re.findall(r"\b(conf|include|packaging|src|examples|bench)/", " ".join(
        re.findall(r"^[A-Z]+ +:?= .*", MAKEFILE.replace("\\\n", " "), re.M))))
    assert copied == {"CHANGELOG.md", "Makefile", "README.md", "SECURITY.md", "VERSION", "bench",
                      "conf", "examples", "include", "packaging", "src"} and \
        {"include", "packaging", "src"} <= used


def test_the_container_is_not_root_and_stops_by_the_signal_that_saves():
    _, final = stages()
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", one(final, "USER"))
    assert one(final, "STOPSIGNAL") == "SIGTERM"
    assert one(final, "EXPOSE") == "7379"
    conf = (PACKAGING / "container/bloomery.conf").read_text()
    assert "dir = %s\n" % one(final, "VOLUME") in conf
    assert "port = %s\n" % one(final, "EXPOSE") in conf


def test_compose_starts_the_container_as_its_head_says():
    service = yaml.safe_load(COMPOSE.read_text())["services"]["bloomery"]
    _, final = stages()
    assert [v.split(":")[1] for v in service["volumes"]] == [one(final, "VOLUME")]
    assert service["ports"] == ["7379:" + one(final, "EXPOSE")]
    place = COMPOSE.parent / service["build"]["context"]
    assert (place / service["build"]["dockerfile"]).samefile(PACKAGING / "container/Containerfile")
    assert "/run/secrets/" + service["secrets"][0] == service["command"][1]
    assert server("--print=words")[1].count(service["command"][0].lstrip("-")) > 0


def test_the_health_check_of_the_container_works(tmp_path):
    _, final = stages()
    text = one(final, "HEALTHCHECK")
    probe = json.loads(text[text.index("["):])
    conf = (PACKAGING / "container/bloomery.conf").read_text()
    with Running(json.loads(one(final, "ENTRYPOINT")), conf, tmp_path,
                 "--threads", "2") as running:
        servers.wait_until(lambda: running.ask(probe).returncode == 0, 20, "healthy",
                           pause=0.1)
        assert running.ask(probe).stdout == "PONG\n"
        assert (tmp_path / "log").read_text().startswith('{"time":"')
        running.child.terminate()
        assert running.child.wait(30 * servers.time_factor()) == 0
        assert running.ask(probe).returncode == 1
    seconds = int(re.search(r"--timeout=(\d+)s", text).group(1))
    assert seconds > 5, "longer than that of --ping"
