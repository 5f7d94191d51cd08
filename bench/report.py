#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
#
# `make bench`: runs the benchmarks one after another, prints their tables, and
# writes them with plots to bench/RESULTS.md. Each benchmark is a program that
# writes its tables as JSON (tables.py). The report leaves out a benchmark that
# is missing, fails, or needs a program that is not installed, and says so.
# --quick is a smoke test that leaves bench/RESULTS.md unchanged.
"""Run all benchmarks and write the report."""

import argparse
import collections
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import compare
import peers
import plots
import servers
import shapes
import tables

BENCH = pathlib.Path(__file__).resolve().parent

Part = collections.namedtuple(
    "Part", "title words limit needs plots meaning answers", defaults=("",))
# words: the program and its options. limit: the seconds after which the report
# ends it, several times its usual duration. needs: programs that it requires.
# answers: the question that its sentences answer on the first page.

# The questions of the first page, in order, with the plot below their answers.
QUESTIONS = {
    "How fast is it?": None,
    "Beside what?": "classics",
    "How large is it?": "memory",
    "What does a save cost?": None,
    "What does a replica cost?": None,
    "What does a cluster cost?": None,
}

PARTS = {
    "cost": Part(
        "What a command costs", ["compare.py", "--build", "{build}",
                                "--seconds", "0.2"], 500, [], ["cost", "ratio"],
        """The null server reads the same bytes from the same sockets, checks
them and answers, but has one small bit array instead of filters. Its CPU time
is the cost of a command that does nothing, and no server can be much cheaper.
A ratio of 1.1 means that everything else (locks, statistics, hashing, the
filter itself) adds a tenth to it. Both servers have one loop and run on one
core that has nothing else to do.""",
        "How fast is it?"),
    "instructions": Part(
        "Instructions, and the cost of features",
        ["callgrind.py", "--build", "{build}", "--server", "{server}",
         "--variants"], 180,
        ["valgrind"], [],
        """Instructions do not depend on how busy the machine is, so these
counts repeat to within about five. They show the cost of each feature that is
on. A feature that is off costs nothing, or one test of a flag for the whole
batch."""),
    "peers": Part(
        "Compared with other servers", ["peers.py", "--build", "{build}"], 240, [], ["peers"],
        """You can repeat this yourself: redis-benchmark against this server
and, if it is installed, a redis-server in the same minute. redis-benchmark
spends more CPU time on a command than the server does, so its requests per
second say more about itself. The CPU time of the server decides how much one
core can serve. The second table compares with a filter kept by hand in a
bitmap, with a SETBIT or GETBIT for each of the 7 bits of an item, all of them
in one pipeline.""",
        "Beside what?"),
    "classics": Part(
        "What people quote", ["classics.py", "--build", "{build}"], 900, [], [],
        """These are the benchmarks that come up when people talk of Bloom
filters in Redis, run again beside the same work on Bloomery: filters in Lua
scripts, bitmaps with SETBIT and GETBIT, libraries in Python and Ruby,
RedisBloom's own benchmark, a filter for each user, a large filter, and a feed.
The published figures are of other machines and other years; the last table
quotes them with their sources. The sizes are smaller than those published,
`bench/classics.py --full` has the published ones.""", "Beside what?"),
    "many": Part(
        "Many filters", ["many.py", "--build", "{build}"], 900, [], ["many"],
        """Most users have a filter for each user, card or campaign. With more
filters than the caches hold, a command waits for memory: for the table of
names, for the entry and for the lines of its filter. Commands of a pipeline
wait together, so they cost less than single ones by more than the kernel's
share. The last table has redis-benchmark with its own random names, and what a
key costs in a redis-server, which does not wait for several keys at a time."""),
    "scaling": Part(
        "More cores", ["scaling.py", "--build", "{build}"], 180, [], ["scaling"],
        """Every loop is a thread with its own connections. If a line follows
the ideal one, twice the loops serve twice the commands. The first table has no
sockets, because a client would need CPUs that the loops need. It measures only
parsing, locks and filters, so waiting for locks weighs more than in a server,
which spends most of its time in the kernel's sockets. With five CPUs or more,
real sockets follow.""",
        "How fast is it?"),
    "memory": Part(
        "Memory", ["memory.py", "--build", "{build}"], 180, [], [],
        """How much memory a filter uses for each item of its capacity,
compared with the least for a Bloom filter of that error rate (1.44
log2(1/rate)), and how much a keyspace of many small filters uses.""",
        "How large is it?"),
    "holds": Part(
        "The longest commands and locks", ["holds.py", "--server", "{server}"], 180,
        [], [],
        """A loop serves one command at a time, so all other clients of that
loop wait for a long command. These are the worst known ones, in CPU time of
the thread, which excludes what else the machine does meanwhile. Notes below
the table explain times above 2 ms."""),
    "bgsave": Part(
        "Latency during BGSAVE", ["bgsave.py", "--build", "{build}"], 120, [], ["bgsave"],
        """A thread of the server copies the data and writes the snapshot, while
the loops go on serving. It holds one lock at a time, for at most 64 KiB, and
needs a core and the disk.""",
        "What does a save cost?"),
    "durability": Part(
        "Durability",
        ["persist.py", "--build", "{build}", "group", "latency"], 120, [], [],
        """How long a client waits for its BF.ADD with each policy of the
journal, and how many adds share one fsync. `bench/persist.py` also measures how long
loading and saving take, and how much CPU the journal costs; that takes too long
for this report."""),
    "replica": Part(
        "Replicas",
        ["replication.py", "--build", "{build}", "stream"], 180, [], [],
        """A replica gets every write that changed something. The CPU time of
all threads of a primary with one replica is compared with that of a server
without one, in pairs. `bench/replication.py` also measures a full
synchronization, which takes too long for this report.""",
        "What does a replica cost?"),
    "cluster": Part(
        "Beside a cluster",
        ["cluster.py", "--build", "{build}", "moved", "failover", "cut"], 300, [], [],
        """Six nodes of a cluster with a server beside each. A client that the
server sends elsewhere costs what a PING costs. The waits are those of a client
that adds one item after the other to a filter of a slot that moves, or whose
primary is replaced; they include what the nodes themselves take.""",
        "What does a cluster cost?"),
    "filter": Part(
        "The filter alone", ["{build}/bench/micro", "--max-mb", "256"], 90,
        [], [],
        """The library without a server, compared with a classic Bloom filter
in the same memory: thread CPU time of one operation. `batch` is the case of a
pipeline or a BF.MADD, whose cache misses overlap."""),
}

HEAD = """# What Bloomery costs

`make bench` wrote this report. The first page has the answers; the targets, the
machine and all tables follow. [bench/README.md](README.md) explains what is
measured and how to repeat a single figure. Look at the ratios: compared programs
ran in turn on the same machine in the same minute. Absolute times depend on this
machine and on other load on it.

Servers run without a journal (`--appendonly no`; the default is `yes`, with
`appendfsync everysec`), so that compared servers do the same work. The exceptions
are tables that name a policy of the journal.
"""


def parse_args():
    """Return the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path,
                        default=servers.DEFAULT_BUILD)
    parser.add_argument("--quick", action="store_true",
                        help="a short smoke test, written under build/")
    parser.add_argument("--part", action="append", choices=PARTS,
                        help="run only this part (may be repeated); the "
                             "report is written under build/")
    parser.add_argument("--out", type=pathlib.Path, default=None,
                        help="folder of RESULTS.md and plots/")
    parser.add_argument("--json", type=pathlib.Path, metavar="DIR",
                        help="keep the parts' JSON here; a part does not run "
                             "if its JSON is here already")
    args = parser.parse_args()
    # Parts run in other folders, and name files below this one.
    args.build = args.build.resolve()
    if args.out is None:
        args.out = (args.build.parent / "bench"
                    if args.quick or args.part else BENCH)
    return args


# ---- running -----------------------------------------------------------------


def missing(part, program):
    """Return the reason why a part cannot run, or None."""
    if not program.exists():
        return f"{program.name} is not there"
    for need in part.needs:
        if shutil.which(need) is None:
            return f"{need} is not installed"
    return None


def end(process):
    """End a part that takes too long, with SIGTERM so that it stops its servers."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(servers.STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def launch(words, limit, output, fine=(0,)):
    """Run a program; return why it failed, or None."""
    with tempfile.TemporaryFile("w+") as errors:
        with subprocess.Popen(words, stdout=output, stderr=errors) as process:
            try:
                process.wait(limit)
            except subprocess.TimeoutExpired:
                end(process)
                return f"not done after {limit} seconds"
            except BaseException:
                end(process)
                raise
        errors.seek(0)
        said = errors.read().strip()
    if process.returncode in fine:
        return None
    return said.splitlines()[-1] if said else f"exit {process.returncode}"


def run_text(words, limit):
    """Run a program that prints text; return it, and why it failed."""
    with tempfile.TemporaryFile("w+") as output:
        # Status 2 means that a mark is missed; the text says which.
        failure = launch(words, limit, output, fine=(0, 2))
        output.seek(0)
        text = output.read()
    print(text, flush=True)
    return text, failure


def run(args, name, folder):
    """Run a part; return its tables, its text, and why there is none."""
    part = PARTS[name]
    first, *options = (word.format(build=args.build,
                                   server=args.build / "bloomery-server")
                       for word in part.words)
    program = BENCH / first
    why = missing(part, program)
    if why is not None:
        return [], "", why
    print(f"==== {part.title}", flush=True)
    if program.suffix != ".py":
        if args.quick:
            options = ["--max-mb", "1", "--rounds", "3"]
        text, why = run_text([program, *options], part.limit)
        return [], text, why
    file = folder / f"{name}.json"
    if not file.exists():
        why = launch([sys.executable, program, *options, "--json", file]
                     + (["--quick"] if args.quick else []), part.limit, None)
    if not file.exists():
        return [], "", why or "it left no figures"
    try:
        return load(name, file), "", why
    except (ValueError, KeyError) as error:
        return [], "", f"{type(error).__name__}: {error}"


def load(name, file):
    """Return the tables of a part's file."""
    data = json.loads(file.read_text(encoding="utf-8"))
    if name in shapes.SHAPES and isinstance(data, dict) \
            and "columns" not in data:
        tables.save(file, shapes.SHAPES[name](data))
    return tables.load(file)


# ---- writing -----------------------------------------------------------------


def first_line(words):
    """Return the first line that a program prints, or that it is missing."""
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.STDOUT, check=False)
    except OSError:
        return "not installed"
    return (done.stdout.splitlines() or [""])[0]


def machine(args, took):
    """Return the table that describes the machine and the run."""
    memory = re.search(r"MemTotal: +(\d+)",
                       pathlib.Path("/proc/meminfo").read_text())
    model = re.match(r"machine: (.*), \d+ CPUs, .*; commit (.*); ",
                     compare.machine())
    rows = [
        ["processor", f"{model.group(1)}, {os.cpu_count()} CPUs"],
        ["memory", f"{int(memory.group(1)) / 2 ** 20:.0f} GiB"],
        ["kernel", f"{platform.system()} {platform.release()}"],
        ["C library", " ".join(platform.libc_ver())],
        ["compiler", first_line([os.environ.get("CC", "cc"), "--version"])],
        ["server", first_line([args.build / "bloomery-server", "--version"])],
        ["commit", model.group(2)],
        ["date", time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())],
        ["load when it began", f"{took['load']:.2f} runnable threads"],
        ["took", f"{took['seconds']:.0f} s"],
    ]
    return tables.markdown(tables.table("machine", "Where and when",
                                        ["", ""], rows))


def tables_of(results):
    """Return the tables of all parts by name."""
    return {each["name"]: each for found, _, _ in results.values()
            for each in found}


def picture(args, name, by_name, folder):
    """Draw a plot; return the lines that show it."""
    if plots.draw(name, by_name, folder) is None:
        return []
    title = " ".join(plots.PLOTS[name].__doc__.split())
    return [f"![{title}]({folder.relative_to(args.out)}/{name}.svg)", ""]


def answers(args, results, folder):
    """Return the first page: each question with its answers and its plot."""
    lines = ["## Answers", ""]
    for question, plot in QUESTIONS.items():
        says = [text for name, (found, _, _) in results.items()
                if PARTS[name].answers == question
                for each in found for text in each["says"]]
        if says:
            lines += [f"**{question}**", "", *(f"- {text}" for text in says), ""]
        if says and plot is not None:
            lines += picture(args, plot, tables_of(results), folder)
    return "\n".join(lines)


def summary(results):
    """Return the table of marks with their measured values."""
    marks = [mark for found, _, _ in results.values() for each in found
             for mark in each["marks"]]
    met = sum(bool(mark["met"]) for mark in marks)
    rows = [[mark["what"], mark["asked"], mark["measured"],
             "yes" if mark["met"] else "**no**"] for mark in marks]
    lines = ["## Targets", ""]
    if rows:
        lines += [tables.markdown(tables.table(
            "summary", f"{met} of {len(marks)} marks met",
            ["what", "asked", "measured", "met"], rows))]
    return "\n".join(lines)


def section(args, name, result, folder):
    """Return a part's section: its explanation, plots and tables."""
    part = PARTS[name]
    found, text, why = result
    lines = [f"## {part.title}", "", part.meaning, ""]
    if why is not None:
        lines += [f"**{'Incomplete' if found else 'Left out'}: {why}.**", ""]
    if part.plots and found and not plots.available():
        lines += ["No plot: gnuplot is not installed.", ""]
    for plot in part.plots if found else []:
        lines += picture(args, plot, tables_of({name: result}), folder)
    lines += [tables.markdown(each) for each in found if not each["hidden"]]
    if text:
        lines += ["```", text.rstrip(), "```", ""]
    return "\n".join(lines)


def write(args, results, took):
    """Write RESULTS.md and the plots."""
    folder = args.out / "plots"
    folder.mkdir(parents=True, exist_ok=True)
    sections = [section(args, name, result, folder)
                for name, result in results.items()]
    target = args.out / "RESULTS.md"
    head = HEAD + ("\n**A smoke test: nothing here is a figure.**\n"
                   if args.quick else "")
    target.write_text("\n".join([head, answers(args, results, folder), summary(results),
                                 machine(args, took),
                                 *sections]), encoding="utf-8")
    print(f"{target}, {took['seconds']:.0f} s")


def main():
    args = parse_args()
    servers.exit_on_sigterm()
    peers.peer([])  # a wrong BENCH_MODULE or BENCH_SERVER ends the run here
    began = time.monotonic()
    load = os.getloadavg()[0]
    results = {}
    with tempfile.TemporaryDirectory(prefix="bench-") as temporary:
        folder = args.json or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name in args.part or PARTS:
            started = time.monotonic()
            results[name] = run(args, name, folder.resolve())
            if results[name][2] is not None:
                print(f"{name}: {results[name][2]}")
            print(f"---- {name}: {time.monotonic() - started:.0f} s\n",
                  flush=True)
    write(args, results,
          {"load": load, "seconds": time.monotonic() - began})
    # A part that is missing is no failure; a part that broke is one.
    broken = [name for name, (_, _, why) in results.items()
              if why is not None and not why.endswith(("is not there", "is not installed"))]
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
