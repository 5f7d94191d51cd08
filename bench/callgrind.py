#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
#
# Counts the user-space instructions a server spends on a command. Each
# workload runs twice under callgrind, with different numbers of commands; the
# difference of the totals over the difference of the commands is the cost of
# one, without start-up, warm-up, connecting and stopping. The figures repeat
# to within a few instructions, whatever else the machine does. Run without a
# server, it counts the null server and exits 1 if one of its pins is broken.
"""Count user-space instructions per command with callgrind."""

import argparse
import pathlib
import re
import sys
import tempfile

import servers

# name: (options of load, commands of the short and of the long run)
WORKLOADS = {
    "add": (["--command", "add", "--pipeline", "100"], 5000, 55000),
    "exists": (["--command", "exists", "--pipeline", "100"], 5000, 55000),
    "madd": (["--command", "madd", "--pipeline", "16"], 80, 800),
    "mexists": (["--command", "mexists", "--pipeline", "16"], 80, 800),
}
# What keeps the null server an honest ceiling: instructions per command.
NULL_PINS = {"add": 300, "exists": 300, "madd": 10000, "mexists": 10000}
FILTER = ("BF.RESERVE", "bench", "0.01", "100000")
RANGE = 10000


def parse_args():
    """Return the command line; what is unknown is the server's."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="Options that are not listed are passed to the server.")
    parser.add_argument("--server", type=pathlib.Path,
                        help="binary to count (default: the null server)")
    parser.add_argument("--build", type=pathlib.Path,
                        default=servers.DEFAULT_BUILD,
                        help="folder of bench/null and bench/load")
    parser.add_argument("--workload", action="append", choices=WORKLOADS,
                        help="only this one (may be repeated)")
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR",
                        help="leave callgrind's files here")
    return parser.parse_known_args()


def run_once(args, server_options, name, commands, folder):
    """Return the instructions of a whole run with that many commands."""
    profile = folder / f"callgrind.{name}.{commands}"
    log = folder / f"valgrind.{name}.{commands}.log"
    wrapper = ["valgrind", "--tool=callgrind", f"--log-file={log}",
               f"--callgrind-out-file={profile}"]
    if args.server is None:
        server = servers.Null(args.build, wrapper=wrapper)
    else:
        server = servers.Bloomery(args.server, server_options,
                                  wrapper=wrapper)
    load = servers.Load(args.build)
    common = ["--connections", "1", "--depth", "1", "--timeout", "60",
              "--range", str(RANGE)]
    with server:
        server.call(*FILTER)
        # The warm-up is the same in both runs: every item is added once.
        load.run(server, ["--command", "add", "--pipeline", "100",
                          "--sequential", "--requests", str(RANGE)] + common)
        options = WORKLOADS[name][0] + ["--requests", str(commands)]
        done = load.run(server, options + common)["commands"]
    found = re.search(r"Collected : (\d+)", log.read_text())
    if found is None:
        sys.exit(f"callgrind.py: no total in valgrind's log:\n"
                 f"{log.read_text()}")
    return int(found.group(1)), int(done)


def count(args, server_options, name, folder):
    """Return the instructions of one command."""
    _, short, long = WORKLOADS[name]
    few, few_commands = run_once(args, server_options, name, short, folder)
    many, many_commands = run_once(args, server_options, name, long, folder)
    return (many - few) / (many_commands - few_commands)


def main():
    args, server_options = parse_args()
    servers.exit_on_sigterm()
    broken = False
    print(f"{'workload':<10}{'instructions/command':>22}{'pin':>8}")
    with tempfile.TemporaryDirectory(prefix="bench-") as temporary:
        folder = args.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name in args.workload or WORKLOADS:
            cost = count(args, server_options, name, folder.resolve())
            pin = NULL_PINS[name] if args.server is None else None
            over = pin is not None and cost > pin
            broken = broken or over
            print(f"{name:<10}{cost:>22.1f}{pin or '-':>8}"
                  f"{'  exceeded' if over else ''}", flush=True)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
