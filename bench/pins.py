#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
#
# Counts the user-space instructions of a command as callgrind.py does, and
# compares each count with a fixed figure, its pin. A count more than 5 % above
# or below its pin fails: a loss must be explained or undone, and a gain lowers
# the pin, so that a later loss is noticed.
#
# The counts of one build in one folder repeat to within 0.5 %, because nothing in
# them depends on time or chance. The server runs with preload/still.c: slow clocks, so that hardly a timer
# fires meanwhile, and the same random bytes in every run. Names and items come from
# a fixed seed. With unix sockets and one batch in flight, each batch arrives in one
# read. The build of the server, the libraries and the processor still matter:
# reasons_not_to_judge() lists what the pins need.
"""Compare instructions per command with their pins."""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import platform
import shutil
import statistics
import sys
import tempfile

import callgrind
import servers
import tables

# The difference that breaks a pin. Counts on many filters move by up to 3 % with
# the folder from which the same code runs, and others with how the compiler
# inlines, so a smaller difference says nothing.
MARGIN = 0.05
ITEMS = 10000  # in the one filter `bench`
NAMES = 10000  # filters of one item each

FILL = ["--command", "add", "--pipeline", "100", "--sequential"]
ALL_ITEMS = [*FILL, "--range", str(ITEMS), "--requests", str(ITEMS)]
KNOWN = ["--range", str(ITEMS)]
NEW = ["--sequential", "--first", str(ITEMS), "--range", "80000"]
NAMED = ["--key", "name", "--keys", str(NAMES), "--range", "1"]
ALL_NAMES = [*FILL, *NAMED, "--requests", str(NAMES)]

# options: of load. fill: options of load for what is there before. pins: the
# instructions of a command, by pipeline. counts: commands of the short and of
# the long run; without it, those of COMMANDS.
Workload = collections.namedtuple("Workload", "options fill pins counts",
                                  defaults=(None,))
COMMANDS = {1: (500, 3500), 16: (1600, 17600), 100: (5000, 25000)}

SERVER_PINS = {
    "BF.ADD, known item":
        Workload(["--command", "add", *KNOWN], ALL_ITEMS, {100: 231}),
    "BF.ADD, new item":
        Workload(["--command", "add", *NEW], ALL_ITEMS, {100: 252}),
    "BF.EXISTS":
        Workload(["--command", "exists", *KNOWN], ALL_ITEMS, {100: 233}),
    "BF.MADD of 100 known items":
        Workload(["--command", "madd", *KNOWN], ALL_ITEMS, {16: 14588},
                 (80, 720)),
    "BF.MADD of 100 new items":
        Workload(["--command", "madd", *NEW], ALL_ITEMS, {16: 15156},
                 (80, 720)),
    "BF.MEXISTS of 100 items":
        Workload(["--command", "mexists", *KNOWN], ALL_ITEMS, {16: 13764},
                 (80, 720)),
    "BF.EXISTS, random names":
        Workload(["--command", "exists", *NAMED], ALL_NAMES,
                 {1: 3357, 16: 1643, 100: 1479}),
    "BF.ADD, random names":
        Workload(["--command", "add", *NAMED], ALL_NAMES,
                 {1: 3468, 16: 1743, 100: 1580}),
    "BF.ADD that creates":
        Workload(["--command", "add", "--sequential", *NAMED], [],
                 {1: 6295, 16: 4592, 100: 4430}, (100, NAMES)),
}
# The limits that keep the null server an honest ceiling.
NULL_LIMITS = {
    "null server: BF.ADD":
        Workload(["--command", "add", *KNOWN], [], {100: 300}),
    "null server: BF.EXISTS":
        Workload(["--command", "exists", *KNOWN], [], {100: 300}),
    "null server: BF.MADD of 100":
        Workload(["--command", "madd", *KNOWN], [], {16: 10000}, (80, 720)),
    "null server: BF.MEXISTS of 100":
        Workload(["--command", "mexists", *KNOWN], [], {16: 10000}, (80, 720)),
}


def parse_args():
    """Return the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path,
                        default=servers.DEFAULT_BUILD,
                        help="folder of the server and of bench/")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(),
                        help="runs at a time")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE",
                        help="leave the table here too")
    return parser.parse_args()


def reasons_not_to_judge(binary):
    """Return how this build or machine differs from that of the pins."""
    reasons = []
    try:
        system = platform.freedesktop_os_release()
    except OSError:
        system = {}
    if (system.get("ID"), system.get("VERSION_ID")) != ("debian", "12"):
        reasons.append("this is not Debian 12, so the libraries differ")
    # valgrind shows every processor with AVX2 as the same one.
    if platform.machine() != "x86_64" or " avx2 " not in pathlib.Path(
            "/proc/cpuinfo").read_text(encoding="utf-8"):
        reasons.append("the processor has no AVX2")
    # gcc and clang write their version into .comment, and gcc its options into
    # the debugging information; GIMPLE is its name while it links with LTO.
    text = pathlib.Path(binary).read_bytes()
    if b"GCC: (Debian 12." not in text or b"clang version" in text:
        reasons.append("the server was not built by gcc of Debian 12")
    elif b"GNU GIMPLE" not in text or b" -O2 " not in text:
        reasons.append("the server was not built with LTO and -O2")
    return reasons


def count(args, server, workload, pipeline, commands, profile):
    """Return the instructions of a whole run and its number of commands."""
    wrapper = ["env", f"LD_PRELOAD={args.build.resolve()}/bench/still.so",
               *callgrind.valgrind(profile)]
    if server == "null":
        process = servers.Null(args.build, wrapper=wrapper, unix=True)
    else:
        process = servers.Bloomery(args.build / "bloomery-server",
                                   ["--save", ""],
                                   wrapper=wrapper, unix=True)
    load = servers.Load(args.build)
    common = ["--connections", "1", "--depth", "1", "--timeout", "60"]
    with process:
        process.call(*callgrind.FILTER)
        if workload.fill:
            load.run(process, workload.fill + common)
        done = load.run(process, [
            *workload.options, "--pipeline", str(pipeline),
            "--requests", str(commands), *common])["commands"]
    return callgrind.collected(profile, process.process.pid), int(done)


class Counter:
    """Counts the instructions of a command, several runs at a time."""

    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.pool = concurrent.futures.ThreadPoolExecutor(args.jobs)
        self.begun = 0

    def start(self, server, workload, pipeline):
        """Begin the short and the long run of a workload."""
        self.begun += 1
        return [self.pool.submit(count, self.args, server, workload, pipeline,
                                 commands, self.folder / f"{self.begun}.{end}")
                for end, commands in enumerate(
                    workload.counts or COMMANDS[pipeline])]

    def cost(self, pair):
        return callgrind.per_command(*(run.result() for run in pair))

    def all(self):
        """Yield server, workload, pipeline, instructions of a command, pin.

        A broken pin gets two more counts, and the median is judged: on a very
        busy machine a count may be wrong, once in a hundred times.
        """
        runs = [(server, name, workload, pipeline,
                 self.start(server, workload, pipeline), pin)
                for server, workloads in (("bloomery", SERVER_PINS),
                                          ("null", NULL_LIMITS))
                for name, workload in workloads.items()
                for pipeline, pin in workload.pins.items()]
        for server, name, workload, pipeline, pair, pin in runs:
            cost = self.cost(pair)
            if not holds(server, cost, pin):
                more = [self.start(server, workload, pipeline)
                        for _ in range(2)]
                cost = statistics.median([cost, *map(self.cost, more)])
            yield server, name, pipeline, cost, pin


def holds(server, cost, pin):
    """Return whether a count is within its limit or near its pin."""
    return (cost <= pin if server == "null"
            else abs(cost / pin - 1) <= MARGIN)


def compare(counted):
    """Return the table and a sentence for each pin that is broken."""
    result = tables.table(
        "pins", "User instructions per command, and their pins",
        ["workload", "pipeline", "counted", "pin", "difference"])
    broken = []
    for server, name, pipeline, cost, pin in counted:
        more = cost / pin - 1
        limit = f"≤ {pin:,}" if server == "null" else pin
        result["rows"].append([name, pipeline, round(cost, 1), limit,
                               f"{100 * more:+.1f} %"])
        if holds(server, cost, pin):
            continue
        if server == "null":
            broken.append(f"{name}, pipeline {pipeline}: {cost:,.1f} "
                          f"instructions, allowed are {pin:,}.")
        else:
            broken.append(
                f"{name}, pipeline {pipeline}: {cost:,.1f} instructions, "
                f"{100 * abs(more):.1f} % {'more' if more > 0 else 'fewer'} "
                f"than the pin, {pin:,}. If that is meant, set the pin to "
                f"{round(cost):,} in SERVER_PINS of bench/pins.py and give the "
                "reason in the commit message.")
    return result, broken


def main():
    args = parse_args()
    servers.exit_on_sigterm()
    if shutil.which("valgrind") is None:
        sys.exit("pins.py: valgrind is missing (Debian package: valgrind)")
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        counter = Counter(args, pathlib.Path(folder))
        try:
            result, broken = compare(counter.all())
        finally:
            counter.pool.shutdown(cancel_futures=True)
    reasons = reasons_not_to_judge(args.build / "bloomery-server")
    if reasons:
        result["notes"].append(f"Not judged: {'; '.join(reasons)}.")
    else:
        result["notes"] += broken or [
            f"Every pin holds within {100 * MARGIN:.0f} %."]
    print(tables.text(result))
    tables.save(args.json, [result])
    return 1 if broken and not reasons else 0


if __name__ == "__main__":
    sys.exit(main())
