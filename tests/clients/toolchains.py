# SPDX-License-Identifier: BSD-3-Clause
#
# Installs the clients of each language: pinned packages from their registry and,
# for compiled languages, the programs built with them. Everything is under
# build/clients, and is made again only when its sources change. Downloads use each
# tool's own cache.
#
# A maker returns the command that runs its program, and the environment for it. It
# raises Missing with the reason if the client is not available here.

import hashlib
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "build" / "clients"


class Missing(Exception):
    """The reason why a client is not available here: it is skipped."""


class Broken(Exception):
    """The reason why our own program does not build, which is a failure."""


def need(*tools):
    for tool in tools:
        if not shutil.which(tool):
            raise Missing("no %s on this machine" % tool)


def reason(output):
    """Returns the line of a tool's output that best describes the error."""
    lines = [x.strip() for x in output.splitlines() if x.strip()]
    errors = [x for x in lines if re.match(r"(npm |\[)?error\b", x, re.I)]
    return (errors or lines[-1:] or ["no output"])[0][:200]


def need_version(name, wanted):
    """Tools whose older versions do not support what our programs use."""
    found = re.search(r"\d+", tool(name, "--version"))
    if found is None or int(found.group()) < wanted:
        raise Missing("%s is older than version %d" % (name, wanted))


def tool(*argv, cwd=None, env=None, problem=Missing):
    """Runs a tool of the toolchain, and keeps its output only if it fails."""
    try:
        got = subprocess.run([str(a) for a in argv], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, errors="replace", timeout=600, cwd=cwd,
                             env=dict(os.environ, **(env or {})))
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Missing("%s: %s" % (argv[0], error)) from None
    if got.returncode != 0:
        if problem is Broken:
            raise Broken(got.stdout[-3000:])
        raise Missing("%s: %s" % (Path(argv[0]).name, reason(got.stdout)))
    return got.stdout


MISSING = {}
# The environment of a program that also wants a replica of the server, whose port it
# then finds there, but not over TLS.
REPLICA = {"BLOOMERY_REPLICA": "0"}


def cached(name, sources, make):
    """Calls make(folder) if the folder was not made from exactly these sources. It
    does not try again what was missing before."""
    if name in MISSING:
        raise MISSING[name]
    try:
        return cached_folder(BUILD / name, sources, make)
    except Missing as why:
        MISSING[name] = why
        raise


def cached_folder(folder, sources, make):
    stamp = folder / ".made-from"
    digest = hashlib.sha256()
    for path in sorted(sources):
        digest.update(str(path).encode() + b"\0" + path.read_bytes())
    if stamp.exists() and stamp.read_text() == digest.hexdigest():
        return folder
    stamp.unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    make(folder)
    stamp.write_text(digest.hexdigest())
    return folder


def python(requirements, script):
    """Installs pip packages in a separate folder without a virtual environment, so
    that several versions of one package can exist."""
    need("python3")
    wanted = HERE / "python" / requirements

    def make(folder):
        shutil.rmtree(folder)
        tool(sys.executable, "-m", "pip", "install", "-q", "--no-deps",
             "--disable-pip-version-check", "--no-compile", "--target", folder,
             "-r", wanted)

    name = "python%d.%d-%s" % (*sys.version_info[:2], wanted.stem)
    at = cached(name, [wanted], make)
    return ([sys.executable, "-B", str(HERE / "python" / script)],
            {"PYTHONPATH": str(at)})


NODE_LOCK = threading.Lock()


def node(script, package):
    need("node", "npm")
    need_version("node", 20)

    def make(folder):
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / "node" / name, folder)
        tool("npm", "ci", "--no-audit", "--no-fund",
             "--loglevel=error", cwd=folder)

    with NODE_LOCK:
        at = cached("node", [HERE / "node" / "package.json",
                             HERE / "node" / "package-lock.json"], make)
    return (["node", str(HERE / "node" / script), package],
            {"CLIENTS_NODE": str(at)})


def go(program, *tags):
    need("go")
    at = HERE / "go"
    made = BUILD / ("go-" + "-".join([program] + list(tags)))

    env = {"GOFLAGS": "", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}

    def make(folder):
        tool("go", "mod", "download", cwd=at, env=env)
        tool("go", "build", "-mod=readonly", "-ldflags=-s -w", "-tags",
             ",".join(tags), "-o", folder / "check", "./" + program, cwd=at,
             env=env, problem=Broken)

    cached(made.name, [*at.glob("*/*.go"), at / "go.mod", at / "go.sum"], make)
    return [str(made / "check")], {}


def rueidis(*tags):
    argv, env = go("rueidis", *tags)
    return argv, dict(env, **REPLICA)


def go_example(name):
    """Builds a program of examples/ with the modules of the checks."""
    need("go")
    source = HERE.parents[1] / "examples" / name

    def make(folder):
        env = {"GOFLAGS": "", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
        tool("go", "mod", "download", cwd=HERE / "go", env=env)
        tool("go", "build", "-mod=readonly", "-o", folder / "example", source,
             cwd=HERE / "go", env=env, problem=Broken)

    at = cached("go-example", [source, HERE / "go/go.mod", HERE / "go/go.sum"], make)
    return [str(at / "example")], {}


def node_example(name, package):
    """Copies a program of examples/ to the packages of the checks, where it finds
    the package under its own name."""
    _, env = node(name, package)
    at = Path(env["CLIENTS_NODE"])
    link = at / "node_modules/redis"
    link.unlink(missing_ok=True)
    link.symlink_to(package)
    return ["node", shutil.copy(HERE.parents[1] / "examples" / name, at)], {}


def rust():
    need("cargo")
    at = HERE / "rust"

    def make(folder):
        manifest = ("--locked", "--manifest-path", at / "Cargo.toml")
        tool("cargo", "fetch", "-q", *manifest)
        # This fails if the compiler is older than the client requires.
        build = ("cargo", "build", "-q", *manifest, "--target-dir", folder)
        tool(*build, "-p", "redis")
        tool(*build, problem=Broken)

    made = cached("rust", [at / "Cargo.toml", at / "Cargo.lock",
                           *at.glob("src/*.rs")], make)
    return [str(made / "debug" / "check_redis_rs")], {}


JAVA_LOCK = threading.Lock()


def java(main_class, source=None, own=""):
    """Compiles the checks, or one source of its own, with the same packages; or
    what the folder OWN has, with packages of its own."""
    need("java", "javac", "mvn")
    need_version("javac", 17)
    at = HERE / "java" / own
    sources = [source] if source else sorted(at.glob("*.java"))
    if own:
        sources.append(HERE / "java" / "Check.java")

    def fetch(folder):
        shutil.rmtree(folder / "lib", ignore_errors=True)
        tool("mvn", "-B", "-q", "-f", at / "pom.xml", "dependency:copy-dependencies",
             "-DoutputDirectory=%s" % (folder / "lib"))

    def compile_all(folder):
        tool("javac", "-d", folder, "-cp", "%s/*" % jars, *sources, problem=Broken)

    with JAVA_LOCK:
        jars = cached("java" + own, [at / "pom.xml"], fetch) / "lib"
        classes = cached("java-example" if source else "java-classes" + own,
                         [at / "pom.xml", *sources], compile_all)
    return ["java", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xmx256m", "-cp",
            "%s:%s/*" % (classes, jars), main_class], {}


def redisson():
    argv, env = java("CheckRedisson", own="redisson")
    return argv, dict(env, **REPLICA)


def java_example(name):
    return java(name, HERE.parents[1] / "examples" / (name + ".java"))


def hiredis():
    need("cc", "pkg-config")
    source = HERE / "c" / "check_hiredis.c"

    def make(folder):
        flags = tool("pkg-config", "--cflags", "--libs", "hiredis").split()
        tool("cc", "-std=c11", "-D_GNU_SOURCE", "-g", "-Wall", "-Wextra",
             source, "-o", folder / "check", *flags, problem=Broken)

    return [str(cached("hiredis", [source], make) / "check")], {}


def php(script, probe):
    """Uses Debian's packages, because the ordinary tools of this system reach no
    registry of PHP."""
    need("php")
    if tool("php", "-r", "echo %s ? 'yes' : 'no';" % probe).strip() != "yes":
        raise Missing("no package for it on this machine")
    return ["php", str(HERE / "php" / script)], {}


def ruby(script):
    need("ruby")
    tool("ruby", "-e", "require 'redis'")
    return ["ruby", str(HERE / "ruby" / script)], {}
