#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
#
# What it costs that a filter grows: bits per item and the error rate of all layers,
# by how many times the items are those that the filter was made for. The server
# computes them (--plan).
"""Compute what growing costs in memory and in error rate."""

import argparse
import pathlib
import subprocess

import plots
import servers

RATE = 0.01
CAPACITY = 10000
TIMES = 1000            # the largest growth of the plot
MOST = 40               # bits per item
EXPANSIONS = (1, 2, 4)
PLOT = servers.ROOT / "bench" / "plots"


def layers(build, expansion):
    """Return [times, bits per item, error rate], a row for each layer."""
    done = subprocess.run(
        [build / "bloomery-server", "--plan", str(RATE), str(CAPACITY),
         "EXPANSION", str(expansion)],
        check=True, capture_output=True, text=True)
    found = {"capacity": [], "bits-per-item": [], "error-rate": []}
    for line in done.stdout.partition("layers:\n")[2].splitlines():
        name, value = line.strip(" -").split(": ")
        if name in found:
            found[name].append(float(value))
    return [[capacity / CAPACITY, bits, rate]
            for capacity, bits, rate in zip(*found.values())
            if capacity <= TIMES * CAPACITY and bits <= MOST]


def body(grown):
    """Return the plot: a panel for the bits and one for the rate."""
    script = [plots.block(f"by{expansion}", rows)
              for expansion, rows in grown.items()]
    script += ["set multiplot layout 1,2 title 'A filter made for too few items, "
               f"{RATE} asked' font ',14'",
               "set logscale x", f"set xrange [0.9:{TIMES * 1.2:.0f}]",
               "set xtics ('1' 1, '10' 10, '100' 100, '1,000' 1000)",
               "set xlabel 'items, as a multiple of the capacity (log)'"]
    for column, label, most in ((2, "bits per item", MOST), (3, "error rate", 0.025)):
        curves = ", \\\n ".join(
            f"$by{expansion} using 1:{column} with linespoints "
            f"title 'EXPANSION {expansion}'" for expansion in grown)
        script += [f"set ylabel '{label}'", f"set yrange [0:{most}]",
                   f"plot {curves}"]
    return "\n".join([*script, "unset multiplot"])


def main():
    """Print the table, and draw the plot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path,
                        default=servers.DEFAULT_BUILD)
    args = parser.parse_args()
    grown = {expansion: layers(args.build, expansion) for expansion in EXPANSIONS}
    print("| expansion | layers | times the capacity | bits per item | error rate |"
          "\n|---|---|---|---|---|")
    for expansion, rows in grown.items():
        for number, (times, bits, rate) in enumerate(rows[:12], 1):
            print(f"| {expansion} | {number} | {times:.0f} | {bits:.1f} | {rate:.4f} |")
    plots.PLOTS["growing"] = lambda _: body(grown)
    if plots.available():
        print(plots.draw("growing", {}, PLOT))


if __name__ == "__main__":
    main()
