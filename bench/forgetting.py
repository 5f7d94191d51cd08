#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
#
# What filters take that forget items: ours as the server plans them, and two others
# by the formulas of their papers.
#
# - A counting Bloom filter has a counter of 4 bits in the place of each bit (Fan,
#   Cao, Almeida, Broder: "Summary Cache", IEEE/ACM Transactions on Networking 8,
#   2000). It is counted with the bits of the classic Bloom filter.
# - A cuckoo filter has (log2(1 / rate) + 3) / 0.95 bits an item, with 4 entries a
#   bucket, 95 % of them in use (Fan, Andersen, Kaminsky, Mitzenmacher: "Cuckoo Filter:
#   Practically Better Than Bloom", CoNEXT 2014).
"""Compare the size of filters that forget with that of others."""

import argparse
import math
import pathlib
import subprocess

import plots
import servers

ITEMS = 1000000
RATES = [10 ** (-exponent / 4) for exponent in range(4, 25)]
REGIONS = (1, 2, 4, 8)
COUNTER_BITS = 4
CUCKOO_LOAD = 0.95
PLOT = servers.ROOT / "bench" / "plots"


def planned(build, rate, *words):
    """Return the bits an item that the server plans."""
    done = subprocess.run(
        [build / "bloomery-server", "--plan", repr(rate), str(ITEMS), *words],
        check=True, capture_output=True, text=True)
    found = [line.split(": ")[1] for line in done.stdout.splitlines()
             if line.startswith("bits-per-item: ")]
    return float(found[0])


def classic(rate):
    """Return the bits an item of the classic Bloom filter."""
    return -math.log(rate) / math.log(2) ** 2


def cuckoo(rate):
    """Return the bits an item of a cuckoo filter."""
    return (math.log2(1 / rate) + 3) / CUCKOO_LOAD


def kinds(build):
    """Return each kind's name, and its bits an item by rate."""
    yield "plain", lambda rate: planned(build, rate)
    for region in reversed(REGIONS):
        yield (f"DELETABLE {region}",
               lambda rate, region=region:
               planned(build, rate, "DELETABLE", str(region)))
    yield "AGEING", lambda rate: planned(build, rate, "AGEING", "86400")
    yield "cuckoo", cuckoo
    yield "counting", lambda rate: COUNTER_BITS * classic(rate)


def body(rows, names):
    """Return the plot."""
    curves = [f"$bits using 1:{number + 2} with linespoints "
              f"title {plots.quote(name)}" for number, name in enumerate(names)]
    return "\n".join([
        plots.block("bits", rows), "set logscale x", "set xrange [0.1:1e-6] reverse",
        "set format x '%g'", "set yrange [0:*]",
        "set title 'Bits an item, 1,000,000 items'",
        "set xlabel 'error rate (log)'", "set ylabel 'bits an item'",
        "plot " + ", \\\n ".join(curves)])


def main():
    """Print the table, and draw the plot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path,
                        default=servers.DEFAULT_BUILD)
    args = parser.parse_args()
    found = list(kinds(args.build))
    print("| filter | bits an item at 0.01 | at 0.001 |\n|---|---|---|")
    for name, bits in found:
        print(f"| {name} | {bits(0.01):.1f} | {bits(0.001):.1f} |")
    plots.PLOTS["forgetting"] = lambda _: body(
        [[rate, *(bits(rate) for _, bits in found)] for rate in RATES],
        [name for name, _ in found])
    if plots.available():
        print(plots.draw("forgetting", {}, PLOT))


if __name__ == "__main__":
    main()
