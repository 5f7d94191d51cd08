# SPDX-License-Identifier: BSD-3-Clause
#
# Draws the report's plots with gnuplot, from the tables of the benchmarks. It
# skips a plot whose table is missing. Each function returns the body of a gnuplot
# script; this file also has the common part (size, colours, background).
"""The plots of the report."""

import shutil
import subprocess

SIZE = (800, 450)
# Okabe and Ito's palette, which is distinguishable with colour blindness and in print.
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00",
           "#000000"]
GREY = "#999999"


def head():
    """Return the common beginning of every script."""
    lines = ["set encoding utf8", "set border 3 lc rgb '#444444'",
             "set tics nomirror out", "set grid ytics lc rgb '#dddddd'",
             "set key outside below center horizontal Left reverse "
             "samplen 2 spacing 1.2", "set title font ',14'",
             "set bmargin 7", "set style fill solid 0.9 noborder"]
    lines += [f"set linetype {number} lc rgb '{colour}' lw 2 pt {point} "
              "ps 0.7"
              for number, (colour, point) in enumerate(
                  zip(COLOURS, (7, 5, 9, 13, 11, 15, 1)), 1)]
    return "\n".join(lines)


def quote(value):
    """Return a text quoted for gnuplot."""
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


def block(name, rows):
    """Return data under a name; None leaves a gap."""
    lines = [" ".join("NaN" if value is None else quote(value)
                      if isinstance(value, str) else f"{value:.6g}"
                      for value in row) for row in rows]
    return "\n".join([f"${name} << EOD", *lines, "EOD"])


def is_number(value):
    """Return whether a value can be drawn."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


# ---- what there is to see ----------------------------------------------------


def cost(found):
    """CPU of the server for one command, by pipeline and filter size."""
    table = found.get("cost")
    if table is None:
        return None
    panels = []
    for request, title in (("add", "BF.ADD"), ("exists", "BF.EXISTS")):
        rows = [row for row in table["rows"]
                if row[2] == request and row[0].startswith("TCP")]
        sizes = list(dict.fromkeys(row[1] for row in rows))
        pipelines = sorted({row[3] for row in rows})
        lines = []
        for pipeline in pipelines:
            its = {row[1]: row for row in rows if row[3] == pipeline}
            lines.append([pipeline, next(iter(its.values()))[4],
                          *(its[size][5] if size in its else None
                            for size in sizes)])
        panels.append((request, title, sizes, lines))
    values = [value for _, _, _, lines in panels for line in lines
              for value in line[1:] if value is not None]
    if not all(lines for _, _, _, lines in panels):
        return None
    low, top = min(values), max(values)
    script = ["set multiplot layout 1,2 title 'CPU of the server for one "
              "command, TCP, 50 connections' font ',14'",
              "set logscale xy", f"set yrange [{low * 0.35:.0f}:{top * 1.7:.0f}]",
              "set xrange [0.8:125]", "set xtics (1, 16, 100)",
              "set ytics (50, 100, 200, 500, '1,000' 1000, '2,000' 2000, "
              "'5,000' 5000, '10,000' 10000, '20,000' 20000)",
              "set xlabel 'commands in a pipeline (log)'",
              "set key inside bottom left vertical Left reverse "
              "font ',11'",
              "set bmargin 4"]
    for request, title, sizes, lines in panels:
        script.append(block(request, lines))
        script.append(f"set title {quote(title)}")
        script.append("set ylabel " + quote(
            "ns per command (log)" if request == "add" else ""))
        curves = [f"${request} using 1:2 with linespoints lt 7 dt 2 "
                  "title 'null server'"]
        curves += [f"${request} using 1:{3 + number} with linespoints "
                   f"lt {1 + number} title {quote('filter of ' + size)}"
                   for number, size in enumerate(sizes)]
        script.append("plot " + ", \\\n ".join(curves))
    return "\n".join([*script, "unset multiplot"])


def ratio(found):
    """CPU per command as a multiple of the null server, and the marks."""
    table = found.get("cost")
    if table is None:
        return None
    sizes = list(dict.fromkeys(row[1] for row in table["rows"]))
    kinds = sorted(dict.fromkeys((row[1], row[0]) for row in table["rows"]),
                   key=lambda kind: sizes.index(kind[0]))
    groups = list(dict.fromkeys((row[3], row[2]) for row in table["rows"]))
    groups.sort(key=lambda group: (group[1].startswith("m"), group[0]))
    by_key = {(row[1], row[0], row[3], row[2]): row for row in table["rows"]}
    script, bars, marks = [], [], []
    width = 0.8 / len(kinds)
    top = 1.0
    for number, kind in enumerate(kinds):
        data = []
        for place, group in enumerate(groups):
            row = by_key.get((*kind, *group))
            if row is not None and row[7] is not None:
                data.append([place - 0.4 + width * (number + 0.5), row[6]])
                marks.append([data[-1][0], row[7], width / 2])
                top = max(top, row[6], row[7])
        if data:
            script.append(block(f"kind{number}", data))
            bars.append(f"$kind{number} using 1:2 with boxes lt {number + 1} "
                        f"title {quote(kind[0] + ', ' + kind[1])}")
    if not bars:
        return None
    names = {"add": "ADD", "exists": "EXISTS", "madd": "MADD",
             "mexists": "MEXISTS"}
    tics = ", ".join(f'"{names[request]}\\npipeline {pipeline}'
                     + ("\\n100 items" if request.startswith("m") else "")
                     + f'" {place}'
                     for place, (pipeline, request) in enumerate(groups))
    script += [block("marks", marks), f"set boxwidth {width * 0.9}", "set bmargin 9",
               f"set xtics ({tics}) scale 0 font ',10'",
               f"set xrange [-0.6:{len(groups) - 0.4}]",
               f"set yrange [0:{top * 1.08}]",
               "set title 'CPU per command, as a multiple of the null "
               "server (lower is better)'",
               "set ylabel 'times the null server'",
               f"plot {', '.join(bars)}, 1 with lines lt 7 lw 1 dt 3 "
               "title 'the null server', $marks using 1:2:3 with xerrorbars "
               "lc rgb 'black' lw 2 pt 0 title 'mark'"]
    return "\n".join(script)


def lines_of(table, script, first=1):
    """Return curves for each column of figures; the first column is x."""
    rows = [row for row in table["rows"] if is_number(row[0])]
    keep = [i for i in range(first, len(table["columns"]))
            if any(is_number(row[i]) for row in rows)]
    script.append(block("data", [
        [row[0], *(row[i] if is_number(row[i]) else None for i in keep)]
        for row in rows]))
    return [f"$data using 1:{place} with linespoints lt {place - 1} "
            f"title {quote(table['columns'][i])}"
            for place, i in enumerate(keep, 2)] if rows else []


def scaling(found):
    """Throughput by number of loops, as a multiple of one loop."""
    table = found.get("scaling")
    title = ", ".join(filter(None, ["Throughput as a multiple of one loop",
                                    table["title"] if table else ""]))
    script = [f"set title {quote(title)}", "set xlabel 'loops'",
              "set bmargin 10",
              "set ylabel 'times one loop'", "set yrange [0:*]",
              "set xrange [0.5:*]", "set xtics 1"]
    curves = lines_of(table, script) if table else []
    if not curves:
        return None
    most = max(row[0] for row in table["rows"] if is_number(row[0]))
    return "\n".join([*script, f"set xrange [0.5:{most + 0.5}]",
                      f"plot [0.5:{most + 0.5}] x with lines lc rgb '{GREY}' "
                      "dt 2 title 'ideal', " + ", ".join(curves)])


def memory(found):
    """Memory for each item, by error rate."""
    table = found.get("memory")
    script = ["set title 'Memory for each item, by error rate'",
              "set xlabel 'error rate (log)'", "set ylabel 'bits per item'",
              "set logscale x", "set format x '%g'", "set yrange [0:*]"]
    curves = lines_of(table, script) if table else []
    if not curves:
        return None
    rates = [row[0] for row in table["rows"] if is_number(row[0])]
    script.append(f"set xrange [{min(rates) / 1.5}:{max(rates) * 1.5}]")
    return "\n".join([*script, "plot " + ", ".join(curves)])


def save_panel(found, name, title):
    """Return the lines that plot one save, or none."""
    series, facts = found.get(f"{name}-series"), found.get(name)
    if series is None or facts is None or not series["rows"]:
        return []
    begins, ends = (facts["window"][key] for key in ("begins", "ends"))
    data = name.replace("-", "_")
    script = [block(data, series["rows"]), "unset arrow", "unset label",
              f"set title {quote(title.format(facts['window']['size']))}",
              f"set xrange [{series['rows'][0][0]}:{series['rows'][-1][0]}]"]
    for at, text in ((begins, "begins"), (ends, "ends")):
        script += [f"set arrow from {at}, graph 0 to {at}, graph 1 nohead "
                   "lc rgb 'black' dt 2 lw 1.5 front",
                   f"set label '{text}' at {at}, graph 0.97 offset 0.5,0 "
                   "front"]
    curves = [("BF.ADD, slowest in 10 ms", 5, "points lt 2 pt 9 ps 0.7"),
              ("PING, slowest in 10 ms", 3, "points lt 1 pt 7 ps 0.35"),
              ("BF.ADD, median of 10 ms", 4, "lines lt 6 lw 2"),
              ("PING, median of 10 ms", 2, "lines lt 5 lw 2")]
    return [*script, "plot " + ", ".join(
        f"${data} using 1:{column} with {style} title '{text}'"
        for text, column, style in curves)]


def bgsave(found):
    """Latency of PING and BF.ADD before, during and after BGSAVE."""
    now = save_panel(found, "bgsave", "Latency during BGSAVE of {}")
    before = save_panel(found, "bgsave-before", "The same with a fork, {}")
    if not now:
        return None
    script = ["set xlabel 'seconds since BGSAVE was sent'",
              "set ylabel 'until the reply came (log)'", "set logscale y",
              "set yrange [10:1e5]",
              "set ytics ('10 µs' 10, '100 µs' 100, '1 ms' 1000, "
              "'10 ms' 1e4, '100 ms' 1e5, '1 s' 1e6, '10 s' 1e7)",
              "set grid xtics ytics"]
    if before:
        script += ["set multiplot layout 1,2", "set key font ',9'"]
    return "\n".join([*script, *now, *before,
                      *(["unset multiplot"] if before else [])])


def peers(found):
    """CPU for one item: BF.* compared with a filter kept by hand."""
    table = found.get("peers-items")
    if table is None or not table["rows"]:
        return None
    rows = [[place, row[0], row[1], row[2]]
            for place, row in enumerate(table["rows"])]
    tics = ", ".join(quote(row[1]).replace(", ", "\\n") + f" {row[0]}"
                     for row in rows)
    top = max(row[3] for row in rows)
    low = min(row[2] for row in rows)
    return "\n".join([
        block("data", rows),
        "set title 'CPU of the server for one item: a filter of SETBIT and "
        "GETBIT beside BF.*'", "set ylabel 'ns per item (log)'",
        "set logscale y", "set boxwidth 0.38", "set bmargin 8",
        "set ytics (10, 100, '1,000' 1000, '10,000' 10000, '100,000' 1e5)",
        f"set yrange [{low / 2}:{top * 3}]",
        f"set xrange [-0.6:{len(rows) - 0.4}]", "set xlabel 'items at a time' offset 0,-1",
        f"set xtics ({tics}) scale 0 font ',10'",
        f"plot $data using ($1-0.2):4 with boxes lt 2 "
        f"title {quote(table['columns'][2])}, "
        f"$data using ($1+0.2):3 with boxes lt 1 "
        f"title {quote(table['columns'][1])}, "
        "$data using ($1-0.2):4:(sprintf('%.0f', $4)) with labels offset "
        "0,0.7 font ',10' notitle, "
        "$data using ($1+0.2):3:(sprintf('%.0f', $3)) with labels offset "
        "0,0.7 font ',10' notitle"])


def many(found):
    """CPU for one command, by the number of filters, and of keys in Redis. Dashed:
    an older build, or Redis."""
    table, tried = found.get("many"), found.get("many-tried")
    if table is None or not table["rows"]:
        return None
    rows = [row[:4] for row in table["rows"]]
    if "baseline, ns" in table["columns"]:
        at = table["columns"].index("baseline, ns")
        rows += [[row[0], f"{row[1]}, before", row[2], row[at]]
                 for row in table["rows"]]
    rows += [[row[0], f"{row[1]} in redis-server", row[2], row[4]]
             for row in (tried["rows"] if tried else ())
             if row[1] in ("GET", "SET")]
    names = list(dict.fromkeys(row[1] for row in rows))
    pipelines = [each for each in (16, 100)
                 if any(row[2] == each for row in rows)]
    if not pipelines:
        return None
    script = [f"set multiplot layout 1,{len(pipelines)} title 'CPU of the "
              "server for one command on one of many filters' font ',14'",
              "set logscale x", "set format x '10^{%T}'",
              "set termoption enhanced",
              "set xlabel 'filters (log)'",
              "set key inside top left vertical Left reverse font ',10'",
              "set bmargin 4"]
    for pipeline in pipelines:
        curves = []
        for number, name in enumerate(names, 1):
            colour = names.index(name.removesuffix(", before")) + 1
            its = [[row[0], row[3]] for row in rows
                   if row[1] == name and row[2] == pipeline]
            if its:
                script.append(block(f"p{pipeline}n{number}", its))
                dashes = (" dt 2" if "redis" in name or colour != number
                          else "")
                curves.append(f"$p{pipeline}n{number} using 1:2 with "
                              f"linespoints lt {colour}{dashes} "
                              f"title {quote(name)}")
        top = max(row[3] for row in rows if row[2] == pipeline) * 1.8
        script += [f"set title 'pipeline {pipeline}'",
                   f"set yrange [0:{top:.0f}]", "set ylabel " + quote(
                       "ns per command" if pipeline == pipelines[0] else ""),
                   "plot " + ", ".join(curves)]
    return "\n".join([*script, "unset multiplot"])


def classics(found):
    """CPU for one item of a filter that is kept in several ways."""
    table = found.get("classics-methods")
    if table is None or not table["rows"]:
        return None
    ways = list(dict.fromkeys(row[0] for row in table["rows"]))
    batches = list(dict.fromkeys(row[1] for row in table["rows"]))
    at = {(row[0], row[1]): (row[2], row[5]) for row in table["rows"]}
    width = 0.84 / len(ways)
    script, curves, labels = [], [], []
    for number, way in enumerate(ways):
        rows = [[place * len(batches) + group - 0.42 + width * (number + 0.5),
                 at[way, batch][place]]
                for place in (0, 1) for group, batch in enumerate(batches)]
        script.append(block(f"way{number}", rows))
        curves.append(f"$way{number} using 1:2 with boxes lt {number + 1} "
                      f"title {quote(way)}")
        labels.append(f"$way{number} using 1:2:(sprintf('%.0f', $2)) with "
                      "labels rotate left offset 0,0.4 font ',9' notitle")
    values = [value for row in table["rows"] for value in (row[2], row[5])]
    tics = ", ".join(
        f'"{request}\\n{batch} at a time" {place * len(batches) + group}'
        for place, request in enumerate(("add", "check"))
        for group, batch in enumerate(batches))
    return "\n".join([
        *script, "set title 'CPU of the server for one item of a filter: BF.*, "
        "a bitmap, Lua scripts (lower is better)'",
        "set ylabel 'ns per item (log)'", "set logscale y",
        f"set boxwidth {width * 0.92}", "set bmargin 7",
        "set ytics (10, 100, '1,000' 1000, '10,000' 10000, '100,000' 1e5)",
        f"set yrange [{min(values) / 2}:{max(values) * 4}]",
        f"set xrange [-0.6:{2 * len(batches) - 0.4}]",
        f"set xtics ({tics}) scale 0 font ',10'",
        "plot " + ", \\\n ".join(curves + labels)])


PLOTS = {"cost": cost, "ratio": ratio, "peers": peers, "classics": classics,
         "many": many,
         "scaling": scaling,
         "memory": memory, "bgsave": bgsave}


def available():
    """Return whether gnuplot is installed."""
    return shutil.which("gnuplot") is not None


def draw(name, found, folder):
    """Draw one plot from tables by name; return its file, or None."""
    body = PLOTS[name](found)
    if body is None or not available():
        return None
    target = folder / f"{name}.svg"
    script = "\n".join([
        f"set terminal svg size {SIZE[0]},{SIZE[1]} background '#ffffff' "
        "font 'Helvetica,12' noenhanced", f"set output {quote(target)}",
        head(), body, "unset output", ""])
    done = subprocess.run(["gnuplot"], input=script, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise SystemExit(f"gnuplot, {name}: {done.stdout.strip()}")
    return target
