#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
#
# `make bench`: runs the benchmarks one after another, prints their tables as
# they come, and keeps them with plots as bench/RESULTS.md. Each benchmark is a
# program of its own that leaves its tables as JSON (tables.py); one that is
# missing, fails, or needs what this machine lacks is left out, and the report
# says so. With --quick it is a smoke test, and nothing that is kept changes.
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
import plots
import servers
import shapes
import tables

BENCH = pathlib.Path(__file__).resolve().parent

Part = collections.namedtuple("Part", "title words limit needs plots meaning")
# words: the program and its options. limit: seconds after which it is ended:
# several times what it takes, as it hangs then. needs: programs without which it is left out.

PARTS = {
    "cost": Part(
        "What a command costs", ["compare.py", "--build", "{build}",
                                "--seconds", "0.2"], 500, [], ["cost", "ratio"],
        """The null server takes the same bytes from the same sockets, checks
them and answers, but has one small array of bits in the place of all filters:
what it spends is what a command costs that does nothing, and no server can be
much cheaper. A ratio of 1.1 says that everything else (locks, statistics,
hashing, the filter itself) adds a tenth to it. Both run on one core that has
nothing else to do, and have one loop."""),
    "instructions": Part(
        "Instructions, and what features add",
        ["callgrind.py", "--build", "{build}", "--server", "{server}",
         "--variants"], 180,
        ["valgrind"], [],
        """Instructions do not depend on how busy the machine is, so this part
repeats to within about five of them. Use it to see what it costs to switch a
feature on: what is off costs nothing, or a test of a flag that the whole
batch shares."""),
    "peers": Part(
        "Beside other servers", ["peers.py", "--build", "{build}"], 240, [], ["peers"],
        """What you can try yourself: redis-benchmark against this server and,
where one is installed, a redis-server in the same minute. redis-benchmark
spends more on a command than the server does, so its requests a second say
more about itself; the CPU time of the server is what decides how far a core
goes. The second table is for those who keep a filter by hand in a bitmap, with
a SETBIT or GETBIT for each of the 7 bits of an item, all of them in one
pipeline."""),
    "scaling": Part(
        "More cores", ["scaling.py", "--build", "{build}"], 180, [], ["scaling"],
        """Every loop is a thread with its own connections. Where a line keeps
to the ideal one, twice the loops serve twice the commands. Measured without
sockets, as a client would need CPUs that the loops need: parsing, locks and
filters only, so that waiting for each other weighs more than it does in a
server, which spends most of its time in the kernel's sockets. Where there are
five CPUs or more, real sockets follow."""),
    "memory": Part(
        "Memory", ["memory.py", "--build", "{build}"], 180, [], ["memory"],
        """How much a filter takes for each item it is made for, beside the
least that a Bloom filter of that error rate can have (1.44 log2(1/rate)), and
what a keyspace of many small ones needs."""),
    "holds": Part(
        "The longest that anything holds a loop", ["holds.py", "--server", "{server}"], 180,
        [], [],
        """A loop serves one command at a time, so a command that takes long is
what all others on that loop wait for. These are the worst known ones, in CPU
time of the thread: what the machine does meanwhile is not in it. Below the
table stands what the time goes into where it is more than 2 ms."""),
    "bgsave": Part(
        "Latency during BGSAVE", ["bgsave.py", "--build", "{build}"], 120, [], ["bgsave"],
        """A snapshot is written by a child process, while clients go on. What
they notice is the fork, and afterwards that the first write to a page makes
the kernel copy it, and that the child needs a core and the disk."""),
    "durability": Part(
        "Durability",
        ["persist.py", "--build", "{build}", "group", "latency"], 120, [], [],
        """What a client waits for its BF.ADD with each policy of the journal,
and how many clients share one fsync. How long loading and saving take, and
what journal and replicas cost in CPU, is measured by `bench/persist.py` and
`bench/replication.py`, which take longer than this report may."""),
    "filter": Part(
        "The filter alone", ["{build}/bench/micro", "--max-mb", "256"], 90,
        [], [],
        """The library without a server, beside a classic Bloom filter in the
same memory: thread CPU time of one operation. `batch` is what a pipeline or a
BF.MADD gets, whose cache misses overlap."""),
}

HEAD = """# What Bloomery costs

Written by `make bench`; what it measures and how to repeat a single figure is
in [bench/README.md](README.md). Look at the ratios: what is compared ran in
turn, in pairs, on the same machine in the same minute. Times alone are this
machine's, and other load on it shows in them.

Servers run without a journal (`--appendonly no`; the default is `yes`, with
`appendfsync everysec`), unless a table names the policy of one: so the servers
that they are compared with do the same work.
"""


def parse_args():
    """Return the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path,
                        default=servers.DEFAULT_BUILD)
    parser.add_argument("--quick", action="store_true",
                        help="a smoke test: few and short, kept under build/")
    parser.add_argument("--part", action="append", choices=PARTS,
                        help="only this one (may be repeated); the report is "
                             "kept under build/, too")
    parser.add_argument("--out", type=pathlib.Path, default=None,
                        help="folder of RESULTS.md and plots/")
    parser.add_argument("--json", type=pathlib.Path, metavar="DIR",
                        help="keep the parts' JSON here; a part whose JSON is "
                             "here already does not run again")
    args = parser.parse_args()
    # Parts run in other folders, and name files below this one.
    args.build = args.build.resolve()
    if args.out is None:
        args.out = (args.build.parent / "bench"
                    if args.quick or args.part else BENCH)
    return args


# ---- running -----------------------------------------------------------------


def missing(part, program):
    """Return why a part cannot run, or None."""
    if not program.exists():
        return f"{program.name} is not there"
    for need in part.needs:
        if shutil.which(need) is None:
            return f"{need} is not installed"
    return None


def end(process):
    """End a part that takes too long: politely, that it stops its servers."""
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
        # 2: a mark of its own is missed, which its text says.
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
    """Return the table of what the figures belong to."""
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


def summary(results):
    """Return the table of what was asked, and what came out."""
    marks = [mark for found, _, _ in results.values() for each in found
             for mark in each["marks"]]
    says = [text for found, _, _ in results.values() for each in found
            for text in each["says"]]
    met = sum(bool(mark["met"]) for mark in marks)
    rows = [[mark["what"], mark["asked"], mark["measured"],
             "yes" if mark["met"] else "**no**"] for mark in marks]
    lines = ["## In short", ""]
    lines += [f"- {text}" for text in says] + [""] * bool(says)
    if rows:
        lines += [tables.markdown(tables.table(
            "summary", f"{met} of {len(marks)} marks met",
            ["what", "asked", "measured", "met"], rows))]
    return "\n".join(lines)


def section(args, name, result, folder):
    """Return a part's section: what it means, its plots, its tables."""
    part = PARTS[name]
    found, text, why = result
    lines = [f"## {part.title}", "", part.meaning, ""]
    if why is not None:
        lines += [f"**{'Incomplete' if found else 'Left out'}: {why}.**", ""]
    by_name = {each["name"]: each for each in found}
    for plot in part.plots if found else []:
        if not plots.available():
            lines += ["No plot: gnuplot is not installed.", ""]
            break
        if plots.draw(plot, by_name, folder) is not None:
            title = plots.PLOTS[plot].__doc__
            lines += [f"![{title}]({folder.relative_to(args.out)}/{plot}.svg)",
                      ""]
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
    target.write_text("\n".join([head, summary(results), machine(args, took),
                                 *sections]), encoding="utf-8")
    print(f"{target}, {took['seconds']:.0f} s")


def main():
    args = parse_args()
    servers.exit_on_sigterm()
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
    # What is missing is said and no failure; what broke is.
    broken = [name for name, (_, _, why) in results.items()
              if why is not None and not why.endswith(("is not there", "is not installed"))]
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
