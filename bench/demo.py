#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
#
# `make demo`: two typical jobs of Bloom filters, on real lists, through a stock
# client. It starts its own server on a free port of 127.0.0.1, and always stops it
# by its process id. It then also loads the names into filters made for a fifteenth
# of them, which grow to four layers, once in each dialect. Exit status 0: every
# added item was found, and the share of false positives is within the promised
# rate plus 4 sigma. 1: not so. 2: a list or a package is missing.
"""Show Bloomery at work: taken usernames and disposable mail domains."""

import argparse
import itertools
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import time

import redis

import servers

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORDS = pathlib.Path("/usr/share/dict/american-english-huge")
NPM_PACKAGE = "disposable-email-domains"
NPM_VERSION = "1.0.62"
NPM_SECONDS = 120
START_SECONDS = 20
ITEMS_A_COMMAND = 1000
COMMANDS_A_PIPELINE = 8
BAR_CELLS = 30
BAR_EVERY_SECONDS = 0.05


class Failure(Exception):
    """An error that ends the demo; its text says what to do."""


def si(value):
    """1234567 -> '1,234,567'."""
    return f"{value:,.0f}"


def percent(rate):
    """0.01 -> '1 %', with three significant digits."""
    return f"{rate * 100:.3g} %"


def size(count):
    """Format bytes with a unit."""
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "bytes" \
                else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


class Screen:
    """Prints lines and one progress bar at a time. A terminal shows the moving
    bar; other outputs get only its end."""

    def __init__(self, out):
        self.out = out
        self.tty = out.isatty() and os.environ.get("TERM") != "dumb"
        utf8 = (out.encoding or "").lower().replace("-", "") == "utf8"
        self.full, self.rest = ("━", "╌") if utf8 else ("#", ".")
        self.last = 0.0

    def style(self, code, text):
        """Wrap text in an ANSI style if the output is a terminal."""
        return f"\033[{code}m{text}\033[0m" if self.tty else text

    def line(self, text=""):
        """Print one line."""
        self.out.write(text + "\n")
        self.out.flush()

    def bar(self, label, done, total, began):
        """Draw a bar, unless it was drawn a moment ago."""
        now = time.monotonic()
        if not self.tty or now - self.last < BAR_EVERY_SECONDS:
            return
        self.last = now
        cells = BAR_CELLS * done // total
        bar = self.style("36", self.full * cells) + \
            self.style("2", self.rest * (BAR_CELLS - cells))
        rate = done / max(now - began, 1e-9)
        self.out.write(f"\r\033[K  {label:<9}{bar} {100 * done // total:3d} %"
                       f"  {si(rate)} a second")
        self.out.flush()

    def bar_end(self, label, text):
        """Replace the bar by its result."""
        if self.tty:
            self.out.write("\r\033[K")
        self.line(f"  {label:<9}{text}")
        self.last = 0.0


class Server:
    """The server of the demo, which always stops with it."""

    def __init__(self, binary, folder):
        self.binary = binary
        self.log_path = folder / "server.log"
        self.process = None
        self.client = None

    def __enter__(self):
        port = servers.free_port()
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [self.binary, "--port", str(port), "--bind", "127.0.0.1",
                 "--dir", str(self.log_path.parent), "--save", ""],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.client = redis.Redis(port=port)
        try:
            self.wait()
        except BaseException:
            self.__exit__()
            raise
        return self.client

    def wait(self):
        """Return when the server answers."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                self.client.ping()
                break
            except redis.ConnectionError as error:
                if self.process.poll() is not None or \
                        time.monotonic() > deadline:
                    log = self.log_path.read_text(errors="replace")
                    raise Failure(f"the server did not start:\n{log}") \
                        from error
                time.sleep(0.01)

    def __exit__(self, *_):
        self.client.close()
        servers.end(self.process)


def chunks(items, length):
    """Lists of `length` items; the last may be shorter."""
    iterator = iter(items)
    while chunk := list(itertools.islice(iterator, length)):
        yield chunk


def send(screen, client, command, key, items, total, label):
    """Send all items in pipelines. Return the sum of the integer replies, and the
    items per second, which include the client's own work."""
    began = time.monotonic()
    ones = done = 0
    for group in chunks(chunks(items, ITEMS_A_COMMAND), COMMANDS_A_PIPELINE):
        pipeline = client.pipeline(transaction=False)
        for chunk in group:
            pipeline.execute_command(command, key, *chunk)
        for chunk, reply in zip(group, pipeline.execute()):
            if len(reply) != len(chunk):
                raise Failure(f"{command} answered {reply[-1]!r}")
            ones += sum(reply)
            done += len(chunk)
        screen.bar(label, done, total, began)
    return ones, done / (time.monotonic() - began)


def absent_items(present, pattern, count):
    """Yield `count` different absent items that look like the present ones."""
    taken = set(present)
    made = (pattern.format(item=item, n=n)
            for n in itertools.count(1) for item in present)
    return itertools.islice((item for item in made if item not in taken),
                            count)


def show(screen, info, rate, job, added):
    """Print the filter's properties and its error rate. Return whether it keeps
    its promise."""
    promised = job["rate"] * job.get("growth", 1)
    sigma = math.sqrt(promised * (1 - promised) / job["absent"])
    bound = promised + 4 * sigma
    good = rate <= bound
    items = info["Number of items inserted"]
    layers = info["Number of filters"]
    screen.line(f"  items    {si(items)} in {layers} layer"
                f"{'s' if layers > 1 else ''} for {si(info['Capacity'])}"
                + (f"; {si(added - items)} looked present while loading"
                   if added != items else ""))
    screen.line(f"  memory   {size(info['Size'])}, "
                f"{info['Size'] * 8 / items:.2f} bits an item")
    verdict = "within" if good else "BEYOND"
    screen.line("  rate     " + screen.style(
        "1;32" if good else "1;31", percent(rate) + " measured")
        + f", {percent(job['rate'])} asked"
        + (f", {percent(promised)} promised once it has grown"
           if "growth" in job else "") + f"; {verdict} "
        f"{percent(bound)} (4 sigma)")
    return good


def run(screen, client, job, present):
    """Do one job. Return whether all is well."""
    key, total = job["key"], len(present)
    screen.line()
    screen.line(screen.style("1", job["title"]))
    screen.line(f"  list     {si(total)} {job['noun']}, {job['source']}")
    client.config_set("dialect", job.get("dialect", "valkey"))
    client.execute_command("BF.RESERVE", key, job["rate"],
                           -(-total // job.get("parts", 1)))
    _, speed = send(screen, client, "BF.MADD", key, present, total, "load")
    screen.bar_end("load", f"{si(total)} added, {si(speed)} a second")

    found, speed = send(screen, client, "BF.MEXISTS", key, present, total,
                        "present")
    missing = total - found
    screen.bar_end("present", (
        f"all {si(total)} found" if missing == 0 else
        screen.style("1;31", f"{si(missing)} MISSING")) +
        f", {si(speed)} a second")

    absent = absent_items(present, job["pattern"], job["absent"])
    claimed, speed = send(screen, client, "BF.MEXISTS", key, absent,
                          job["absent"], "absent")
    screen.bar_end("absent", f"{si(job['absent'])} asked, {si(claimed)} "
                   f"wrongly said to be there, {si(speed)} a second")

    reply = client.execute_command("BF.INFO", key)
    info = {name.decode(): value
            for name, value in zip(reply[::2], reply[1::2])}
    rate_holds = show(screen, info, claimed / job["absent"], job, total)
    return missing == 0 and rate_holds


def read_words(path):
    """The word list, each word once."""
    if not path.exists():
        raise Failure(f"{path} is missing; install wamerican-huge "
                      "(make deps does)")
    return list(dict.fromkeys(path.read_text(encoding="utf-8").split("\n")[:-1]))


def read_domains(folder):
    """The npm package's list, or the reason why there is none."""
    archive = folder / f"{NPM_PACKAGE}-{NPM_VERSION}.tgz"
    if not archive.exists():
        npm = shutil.which("npm")
        if npm is None:
            return None, "npm is not installed"
        try:
            subprocess.run(
                [npm, "pack", f"{NPM_PACKAGE}@{NPM_VERSION}"], cwd=folder,
                check=True, timeout=NPM_SECONDS, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        except (subprocess.SubprocessError, OSError):
            return None, f"npm could not fetch {NPM_PACKAGE}"
    with tarfile.open(archive) as tar:
        domains = json.load(tar.extractfile("package/index.json"))
    return list(dict.fromkeys(domains)), None


def jobs(options):
    """The jobs. "parts": the filter is made for this fraction of the list, and
    grows. "growth": the allowed multiple of the requested rate then."""
    grown = {"noun": "words as taken names", "source": str(options.words),
             "rate": 0.01, "absent": options.absent, "pattern": "{item}{n}",
             "parts": 15}
    return [
        {"key": "usernames", "title": "Is this username taken?",
         "noun": "words as taken names", "source": str(options.words),
         "rate": 0.01, "absent": options.absent, "pattern": "{item}{n}"},
        {"key": "spam-domains", "title": "Is this mail address disposable?",
         "noun": "domains", "source": f"npm {NPM_PACKAGE} {NPM_VERSION}",
         "rate": 0.0001, "absent": options.absent, "pattern": "m{n}.{item}"},
        grown | {"key": "outgrown", "dialect": "valkey", "growth": 2,
                 "title": "And if there are 15 times as many as planned?"},
        grown | {"key": "outgrown-redis", "dialect": "redis", "growth": 1,
                 "title": "The same in dialect redis"},
    ]


def demo(screen, options):
    """Run all jobs against one server."""
    options.folder.mkdir(parents=True, exist_ok=True)
    if not options.server.exists():
        raise Failure(f"{options.server} is missing; build it with make")
    words, domains, *grown = jobs(options)
    names = read_words(options.words)
    screen.line(f"{screen.style('1', 'Bloomery')}: real lists through a stock "
                f"client (redis-py {redis.__version__}, which bounds the "
                "speed shown)")
    good = True
    with Server(options.server, options.folder) as client:
        good &= run(screen, client, words, names)
        listed, why_not = read_domains(options.folder)
        if listed is None:
            screen.line()
            screen.line(screen.style("1", domains["title"]))
            screen.line(f"  skipped  {why_not}")
        else:
            good &= run(screen, client, domains, listed)
        for job in grown:
            good &= run(screen, client, job, names)
    screen.line()
    screen.line("Nothing that was added is missing, and the error rates hold."
                if good else
                screen.style("1;31", "A filter broke its promise: see above."))
    return good


def main():
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", type=pathlib.Path,
                        default=ROOT / "build/release/bloomery-server")
    parser.add_argument("--words", type=pathlib.Path, default=WORDS)
    parser.add_argument("--absent", type=int, default=1_000_000)
    parser.add_argument("--folder", type=pathlib.Path,
                        default=ROOT / "build/demo")
    options = parser.parse_args()
    # SIGTERM also leaves the `with` block, so that the server stops too.
    servers.exit_on_sigterm()
    screen = Screen(sys.stdout)
    try:
        return 0 if demo(screen, options) else 1
    except (Failure, redis.RedisError, ValueError) as error:
        if screen.tty:
            screen.line()
        sys.stderr.write(f"demo: {error}\n")
        return 2
    except KeyboardInterrupt:
        screen.line()
        return 130


if __name__ == "__main__":
    sys.exit(main())
