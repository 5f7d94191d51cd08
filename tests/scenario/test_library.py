# SPDX-License-Identifier: BSD-3-Clause
#
# libbloomery and libbloomery-local as a program gets them: installed, found by pkg-config, static or shared,
# in C and in C++, and the check of its ABI.

import os
import re
import shutil
import subprocess

import pytest

from lib import resp, servers

MODE = os.environ.get("BLOOMERY_MODE", "release")
pytestmark = pytest.mark.skipif(MODE != "release", reason="one build is enough")
TOP = servers.TOP
CXX = shutil.which("c++") or shutil.which("clang++")


def run(*words, **more):
    got = subprocess.run([str(w) for w in words], stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, timeout=300,
                         check=False, **more)
    assert got.returncode == 0, (words, got.stdout)
    return got.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """The library installed below a folder of its own."""
    folder = tmp_path_factory.mktemp("installed")
    env = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    run("make", "-C", TOP, "install-library", "PREFIX=%s" % folder, env=env)
    return folder


def flags(prefix, *words):
    env = dict(os.environ, PKG_CONFIG_PATH=str(prefix / "lib/pkgconfig"))
    return run("pkg-config", *words, env=env).split()


def compile_example(prefix, name, program, *packages):
    run("cc", "-O2", "-Wall", "-Wextra", "-Werror", TOP / "examples" / name,
        *flags(prefix, "--cflags", "--libs", *packages),
        "-Wl,-rpath,%s/lib" % prefix, "-o", program)


def declared(header="bloom.h", prefix="bloom_", more=("bloom_seed_fixed",)):
    """Returns the names that a public header declares."""
    text = (TOP / "include/bloomery" / header).read_text()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return set(re.findall(r"\b(%s\w+)\([^*]" % prefix, text)) | set(more)


def exported(path, *options):
    return {line.split()[-1].split("@")[0]
            for line in run("nm", "-g", "--defined-only", *options, path)
            .splitlines() if len(line.split()) == 3}


def test_both_libraries_export_what_the_header_declares_and_no_more(prefix):
    assert len(declared()) > 20
    versions = {"BLOOMERY_1", "BLOOMERY_1_1"}
    assert exported(prefix / "lib/libbloomery.so.1", "-D") - versions == declared()
    assert exported(prefix / "lib/libbloomery.a") == declared()
    local = declared("local.h", "bloomery_local_", ())
    assert len(local) == 8
    assert exported(prefix / "lib/libbloomery-local.so.1", "-D") - \
        {"BLOOMERY_LOCAL_1"} == local
    assert exported(prefix / "lib/libbloomery-local.a") == local


def test_the_man_page_names_every_function(prefix):
    page = (prefix / "share/man/man3/libbloomery.3").read_text()
    assert {name for name in declared() if name not in page} == set()
    page = (prefix / "share/man/man3/libbloomery-local.3").read_text()
    local = declared("local.h", "bloomery_local_", ())
    assert {name for name in local if name not in page} == set()


def test_the_shared_library_needs_nothing_but_the_c_library(prefix):
    needed = re.findall(r"NEEDED.*\[(.*)\]",
                        run("readelf", "-d", prefix / "lib/libbloomery.so.1"))
    assert {name for name in needed if not name.startswith("ld-linux")} == \
        {"libc.so.6", "libm.so.6"}
    assert "[libbloomery.so.1]" in run("readelf", "-d",
                                       prefix / "lib/libbloomery.so")


FIRST = """apple is new
banana is new
apple is there already
apple: yes
cherry: no
"""


def test_the_first_example_runs_with_either_library(prefix, tmp_path):
    compile_example(prefix, "first.c", tmp_path / "shared", "libbloomery")
    assert "libbloomery.so.1" in run("readelf", "-d", tmp_path / "shared")
    assert run(tmp_path / "shared").startswith(FIRST)
    run("cc", TOP / "examples/first.c", "-I%s/include" % prefix,
        prefix / "lib/libbloomery.a", "-lm", "-o", tmp_path / "static")
    assert run(tmp_path / "static").startswith(FIRST)


def test_the_local_example_runs_with_either_library(prefix, tmp_path, server):
    compile_example(prefix, "local.c", tmp_path / "shared", "libbloomery-local")
    run("cc", TOP / "examples/local.c", "-I%s/include" % prefix,
        prefix / "lib/libbloomery-local.a", *flags(prefix, "--libs", "libssl"),
        "-lcrypto", "-lm", "-o", tmp_path / "static")
    with server.conn() as conn:
        conn.call("BF.ADD", "names", "alice")
    for program in "shared", "static":
        said = run(tmp_path / program, "redis://127.0.0.1:%d" % server.port, "names",
                   input="alice\nbob\n")
        assert "alice: present\n" in said and "bob: absent\n" in said
    assert "libbloomery-local.so.1" in run("readelf", "-d", tmp_path / "shared")


@pytest.mark.skipif(CXX is None, reason="no C++ compiler")
def test_a_program_in_cxx_links_every_function(prefix, tmp_path):
    source = tmp_path / "all.cc"
    source.write_text("#include <bloomery/bloom.h>\n#include <bloomery/local.h>\n"
                      "const void *all[] = { %s };\n"
                      "int main() { return all[0] == nullptr; }\n" %
                      ", ".join("reinterpret_cast<const void *>(&%s)" % name
                                for name in sorted(
                                    declared() |
                                    declared("local.h", "bloomery_local_", ()))))
    run(CXX, "-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", source,
        *flags(prefix, "--cflags", "--libs", "libbloomery", "libbloomery-local"),
        "-Wl,-rpath,%s/lib" % prefix, "-o", tmp_path / "all")
    run(tmp_path / "all")


# ---- with a server -------------------------------------------------------------

ITEMS = 100_000
TIMES = 100


def test_an_example_checks_ten_million_items_and_sends_the_new_ones(
        prefix, tmp_path, start_server):
    compile_example(prefix, "send-new.c", tmp_path / "send-new", "libbloomery", "hiredis")
    server = start_server()
    old = "".join("user:%d\n" % i for i in range(ITEMS))

    def send(text):
        """Returns the first line that the example prints, and what it sent."""
        (tmp_path / "items").write_text(text)
        with open(tmp_path / "items") as lines:
            said = run(tmp_path / "send-new", "127.0.0.1", server.port, "names",
                       stdin=lines)
        first, last = said.splitlines()
        return first, int(last.replace(" new items sent", ""))

    with resp.Conn(("127.0.0.1", server.port)) as conn:
        assert conn.call("BF.RESERVE", "names", "0.000001", ITEMS + 10) == b"OK"
        assert send("")[1] == 0
        assert ITEMS - 10 < send(old)[1] <= ITEMS
        many = old * TIMES + "new:1\nnew:2\nnew:1"
        said = [send(many), send(many)]
        assert [sent for _, sent in said] == [3, 0]
        assert conn.call("BF.MEXISTS", "names", "new:1", "new:2", "new:3") == \
            [1, 1, 0]
    rates = [float(re.match(r"%d items checked, ([\d.]+) million a second$" %
                            (ITEMS * TIMES + 3), first).group(1))
             for first, _ in said]
    print("million items a second:", rates)
    assert min(rates) > 0   # bench/ has the mark


@pytest.mark.parametrize("layout", ["native", "redisbloom", "valkeybloom"])
def test_a_program_checks_filters_of_every_layout(prefix, tmp_path,
                                                  start_server, layout):
    compile_example(prefix, "send-new.c", tmp_path / "send-new", "libbloomery", "hiredis")
    server = start_server("--bloom-layout", layout)
    items = ["user:%d" % i for i in range(1000)]
    (tmp_path / "items").write_text("\n".join(items + ["new"]))
    with resp.Conn(("127.0.0.1", server.port)) as conn:
        conn.call("BF.RESERVE", "names", "0.000001", 100)
        conn.call("BF.MADD", "names", *items)
        with open(tmp_path / "items") as lines:
            said = run(tmp_path / "send-new", "127.0.0.1", server.port, "names",
                       stdin=lines)
        assert said.endswith("\n1 new items sent\n")
        assert conn.call("BF.EXISTS", "names", "new") == 1


# ---- the ABI -------------------------------------------------------------------

def abi(library, *options):
    return subprocess.run([str(w) for w in (TOP / "tests/abi", *options, library)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=300, check=False)


# What is changed, and what the check says about it.
CHANGES = {
    "a removed symbol": ("packaging/libbloomery.map", "    bloom_copy;\n", "",
                         "1 Removed function"),
    "a longer struct": ("include/bloomery/bloom.h", "struct bloom_env {\n",
                        "struct bloom_env {\n    int first;\n",
                        "type size changed"),
    "another type": ("include/bloomery/bloom.h", "    uint64_t items; ",
                     "    double items; ", "type of 'uint64_t items' changed"),
    "another value": ("include/bloomery/bloom.h", "    BLOOM_FULL, ",
                      "    BLOOM_NEW, BLOOM_FULL, ", "enumerator"),
}


def build_changed(folder, path, old, new):
    """Builds the shared library of a copy of the sources with one change."""
    for name in ("src", "include", "packaging"):
        shutil.copytree(TOP / name, folder / name)
    text = (folder / path).read_text()
    assert old in text, path
    (folder / path).write_text(text.replace(old, new, 1))
    plan = run("make", "-n", "-C", TOP, "-W", "packaging/libbloomery.map",
               "V=1", "build/release/libbloomery.so.1", env={k: v for k, v in os.environ.items()
                                      if not k.startswith("MAKE")})
    sources = sorted(set(re.findall(r"build/release/library/(src/\S+)\.o",
                                    plan)))
    assert len(sources) > 8, plan
    run("gcc", "-std=c11", "-D_GNU_SOURCE", "-g", "-w", "-fPIC", "-shared",
        "-fvisibility=hidden", "-Isrc", "-Iinclude",
        *[name + ".c" for name in sources],
        "-Wl,--version-script=packaging/libbloomery.map",
        "-Wl,-soname,libbloomery.so.1", "-o", "libbloomery.so.1", "-lm", cwd=folder)
    return folder / "libbloomery.so.1"


@pytest.mark.skipif(not shutil.which("abidiff"), reason="no abigail-tools")
def test_the_abi_is_the_recorded_one(prefix):
    for name in "libbloomery", "libbloomery-local":
        got = abi(prefix / ("lib/%s.so.1" % name))
        assert got.returncode == 0, got.stdout


@pytest.mark.skipif(not shutil.which("abidiff"), reason="no abigail-tools")
@pytest.mark.parametrize("what", sorted(CHANGES))
def test_the_abi_check_fails_on(tmp_path, what):
    path, old, new, said = CHANGES[what]
    got = abi(build_changed(tmp_path, path, old, new), "--headers",
              tmp_path / "include")
    assert got.returncode == 1 and said in got.stdout, got.stdout
