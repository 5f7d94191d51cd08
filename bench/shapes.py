# SPDX-License-Identifier: BSD-3-Clause
#
# Converts the plain data of memory.py, scaling.py and holds.py, which other
# programs can use as well, into the report's tables, marks and plots. Each
# function takes the contents of such a file.
"""Tables from the plain data of some parts."""

import tables

MIB = 1 << 20


def memory(data):
    """Bits per item, bytes of a small filter, memory after deletion."""
    bits = tables.table(
        "bits", f"Bits per item of a filter for {data['items']:,} items",
        ["error rate", "bits per item", "least possible", "more than that",
         "rate measured"],
        [[f"{row['rate']:g}", round(row["bits"], 2), round(row["least"], 2),
          f"{row['overhead']:+.1%}",
          None if row["measured"] is None else f"{row['measured']:.6f}"]
         for row in data["bits"]])
    asked = [row for row in data["bits"] if row["met"] is not None]
    bits["marks"] = [tables.mark(
        "bits per item over the least possible, error rates of 0.01 and less",
        "≤ 11 %", f"{max(row['overhead'] for row in asked):.1%} at most",
        all(row["met"] for row in asked))] if asked else []
    plot = tables.table(
        "memory", "", ["rate", "Bloomery", "least possible: 1.44 log2(1/rate)"],
        [[row["rate"], row["bits"], row["least"]] for row in data["bits"]],
        hidden=True)
    one, left = data["small"], data["left"]
    bits["says"] = [
        f"At an error rate of {row['rate']:g}, a filter takes "
        f"{row['bits']:.1f} bits for each item, {row['overhead']:.0%} more "
        f"than any Bloom filter has to; a small one takes {one['rss']:.0f} "
        "bytes with its name."
        for row in data["bits"] if row["rate"] == 0.01]
    small = tables.table(
        "small", f"{left[0]['keys']:,} small default filters, one item in "
        "each: what stays when they are gone, resident MiB",
        ["gone by", "at the start", "with all of them", "left", "allowed"],
        [[row["way"], *(round(row[key] / MIB, 1) for key in (
            "start_rss", "full_rss", "left_rss", "allowed_rss"))]
         for row in left],
        [f"One such filter takes {one['rss']:.0f} bytes of resident memory "
         f"with its name, {one['used']:.0f} by the server's own account."])
    small["marks"] = [
        tables.mark("resident bytes of a small default filter, name included",
                    f"≤ {one['mark']}", f"{one['rss']:.0f}", one["met"]),
        tables.mark(
            f"resident {left[0]['after_s']} s after deleting "
            f"{left[0]['keys']:,} of them", "≤ 1.2 × start + 16 MiB",
            ", ".join(f"{row['left_rss'] / MIB:.0f} MiB ({row['way']})"
                      for row in left), all(row["met"] for row in left))]
    return [bits, plot, small]


# The names of workloads in bench/scaling.py, and their descriptions.
WORKLOADS = {
    "exists-one": "BF.EXISTS, one filter", "add-one": "BF.ADD, one filter",
    "add-new": "BF.ADD of new items, one filter",
    "exists-own": "BF.EXISTS, a filter for each loop",
    "add-own": "BF.ADD, a filter for each loop",
    "exists-many": "BF.EXISTS, 10,000 filters",
    "add-many": "BF.ADD, 10,000 filters",
}
UNDISTURBED_ROUNDS = 5  # of bench/scale.c: of fewer, the figure is chance


def workload(row):
    """Return the workload of a row in words."""
    return WORKLOADS.get(row["workload"], row["workload"])


def scaling_plot(title, rows, loops, ratio):
    """Return the plot's table: loops, then a column for each workload."""
    names = list(dict.fromkeys(map(workload, rows)))
    by_key = {(row[loops], workload(row)): row[ratio] for row in rows}
    return tables.table(
        "scaling", title, ["loops", *names],
        [[count, *(1.0 if count == 1 else by_key.get((count, name))
                   for name in names)]
         for count in sorted({1, *(row[loops] for row in rows)})], hidden=True)


def disturbed(row):
    """Return the note for a figure from too few rounds."""
    enough = row.get("undisturbed", UNDISTURBED_ROUNDS) >= UNDISTURBED_ROUNDS
    return "" if enough else " (disturbed: others used the CPUs)"


def scaling_says(rows):
    """Return the sentence on the gain of two loops, for the report's top."""
    two = {row["workload"]: row["relative"] for row in rows
           if row["threads"] == 2}
    if not {"exists-one", "add-one", "exists-many", "add-many"} <= set(two):
        return []
    return [
        f"Two threads serve {two['exists-one']:.1f} times as many BF.EXISTS as "
        f"one on one filter, and {two['add-one']:.1f} times as many BF.ADD; on "
        f"10,000 filters {two['exists-many']:.1f} and {two['add-many']:.1f} "
        "times (measured without sockets)."]


def scaling(data):
    """More loops: inside one process, and with real sockets if there are."""
    inside = tables.table(
        "inside", "Threads that dispatch prepared batches, without sockets",
        ["workload", "pipeline", "threads", "commands/s", "CPU ns",
         "times one", "threads that share nothing", "times those"],
        [[workload(row), row["pipeline"],
          row["threads"] if row["locks"] == "yes" else "1, no locks",
          round(row["rate"]), row["cpu_ns"],
          *(f"{row[key]:.2f}" for key in ("ratio", "control", "relative"))]
         for row in data["inside"]],
        ["`Threads that share nothing` is the speed of the machine itself at "
         "that moment, as a multiple of one thread. `times those` is the ratio "
         "that would result if two threads had exactly twice that speed."])
    shared = [row for row in data["inside"]
              if row["locks"] == "yes" and row["pipeline"] == 16]
    inside["marks"] = [
        tables.mark(f"two loops as a multiple of one: {workload(row)}, "
                    "pipeline 16, without sockets", "≥ 1.7",
                    f"{row['relative']:.2f}" + disturbed(row),
                    row["relative"] >= 1.7)
        for row in shared if row["threads"] == 2]
    inside["says"] = scaling_says(shared)
    found = [inside]
    if data["sockets"]:
        found.append(tables.table(
            "sockets", "Servers of so many loops, real sockets, pipeline 16",
            ["workload", "loops", "commands/s", "CPUs used", "times one loop"],
            [[workload(row), row["loops"], round(row["rate"]), row["cpus"],
              row["ratio"]] for row in data["sockets"]]))
        found[-1]["marks"] = [
            tables.mark(f"{row['loops']} loops as a multiple of one: "
                        f"{workload(row)}, real sockets",
                        f"≥ {row['mark']:.1f}", f"{row['ratio']:.2f}",
                        row["ratio"] >= row["mark"])
            for row in data["sockets"] if row["mark"] is not None]
        found.append(scaling_plot("real sockets, pipeline 16",
                                  data["sockets"], "loops", "ratio"))
    elif shared:
        found.append(scaling_plot("without sockets, pipeline 16", shared,
                                  "threads", "relative"))
    return found


def holds(data):
    """The longest handler and lock of each case."""
    cases = data["cases"]
    result = tables.table(
        "holds", "The longest handler and the longest hold of a lock, thread "
        "CPU time, µs",
        ["case", "command", "µs", "lock", "its µs", "below 2 ms"],
        [[row["case"], row["handler"] or None,
          row["handler_usec"] if row["handler"] else None,
          row["lock"] or None, row["lock_usec"] if row["lock"] else None,
          "yes" if row["met"] else "NO"] for row in cases],
        [f"{row['case']}: {row['note']}" for row in cases
         if row["note"] and not row["met"]])
    result["notes"].append(
        "An empty field means that no command or lock took 0.2 ms of wall "
        "time; the server does not measure shorter ones.")
    for kind, (what, asked) in HOLD_KINDS.items():
        rows = [row for row in cases if row.get("kind", "") == kind]
        if rows:
            result["marks"].append(hold_mark(
                rows, what, asked,
                data.get("fault_usec") if kind == "fault" else None))
    return [result]


# Page faults are not part of the server but cannot be avoided. The mark of such
# cases is that they take no longer than the page faults.
HOLD_KINDS = {
    "": ("longest that one command holds a loop or a lock", "< 2 ms"),
    "fault": ("the same, first touch of large memory",
              "< 2 ms, but for page faults"),
    "items": ("the same, adds of many items, which are one step",
              "< 0.2 µs an item"),
    "moment": ("the same, EXEC of 10,000 commands and DUMP of 120 MB, which are "
               "of one moment", "< 5 µs a command, < 250 ms"),
    "names": ("the same, KEYS over names of 1 MB", "< 10 ms"),
    "merge": ("the same, BF.MERGE of two filters of 120 MB, which is one step",
              "< 100 ms"),
}
FAULTS_OF_AN_ITEM = 3


def hold_mark(rows, what, asked, fault):
    """Return the mark of some cases; FAULT is the time of page faults."""
    longest = [(max(row["handler_usec"], row["lock_usec"]), row["case"])
               for row in rows]
    worst, case = max(longest)
    missed = sum(not row["met"] for row in rows)
    said = f"{worst / 1000:.2f} ms ({case})"
    met = missed == 0
    if fault is not None:
        said += (f"; the kernel takes {fault['median'] / 1000:.2f} ms for one "
                 f"page alone, up to {fault['longest'] / 1000:.2f}")
        met = met or worst <= FAULTS_OF_AN_ITEM * fault["longest"]
    elif missed:
        said += f", {missed} of {len(rows)} cases over"
    else:
        said += f", the longest of {len(rows)} cases"
    return tables.mark(what, asked, said, met)


SHAPES = {"memory": memory, "scaling": scaling, "holds": holds}
