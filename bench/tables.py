# SPDX-License-Identifier: BSD-3-Clause
#
# The format of a benchmark's figures: one table or a list of tables, as JSON.
# bench/README.md explains the fields. A program prints its tables and, with --json
# FILE, writes them to FILE too. bench/report.py reads these files.
"""Tables of figures: printed, written as Markdown, kept as JSON."""

import json
import pathlib
import re
import statistics

FIGURE = re.compile(r"[-+–<>≤≥]?=? ?[\d.,]*( \([\d.]+\)| and [\d.]+)? ?%?")


def table(name, title, columns, rows=(), notes=(), hidden=False):
    """Return a table; a HIDDEN one is for a plot only."""
    return {"name": name, "title": title, "columns": list(columns),
            "rows": [list(row) for row in rows], "notes": list(notes),
            "marks": [], "says": [], "hidden": hidden}


def mark(what, asked, measured, met):
    """Return a line of the summary: the target and the measured value."""
    return {"what": what, "asked": asked, "measured": measured, "met": met}


def load(path):
    """Return the tables of a file, with defaults for missing fields."""
    data = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    tables = data if isinstance(data, list) else [data]
    for number, each in enumerate(tables):
        if "columns" not in each or "rows" not in each:
            raise ValueError(f"{path}: table {number + 1} has no columns or "
                             "no rows")
        for field, value in table("", "", ()).items():
            each.setdefault(field, value)
    return tables


def save(path, tables):
    """Write tables for load(); write nothing if PATH is None."""
    if path is not None:
        pathlib.Path(path).write_text(
            json.dumps(tables, indent=1, ensure_ascii=False) + "\n",
            encoding="utf-8")


def cell(value, digits=None):
    """Return a value as text, with DIGITS after the decimal point."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if digits is None:
            digits = digits_for(value)
        if value != 0 and abs(value) < 0.5 * 10 ** -digits:
            digits += 2
        return f"{value + 0.0:,.{digits}f}"  # no -0
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)


def digits_for(value):
    """Return how many decimals leave about three significant digits."""
    return 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2


def cells(each):
    """Return the rows as text: each column to the digits of its largest."""
    digits = []
    for column in zip(*each["rows"]):
        numbers = [abs(value) for value in column if isinstance(value, float)]
        digits.append(digits_for(max(numbers, default=0)))
    return [[cell(value, places) for value, places in zip(row, digits)]
            for row in each["rows"]]


def is_figure(value):
    """Return whether to align a cell to the right: a number, or one as text."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) \
        or FIGURE.fullmatch(cell(value)) is not None


def figures(each):
    """Return for every column whether all of its cells are figures."""
    return [bool(each["rows"]) and all(is_figure(row[i])
                                       for row in each["rows"])
            for i in range(len(each["columns"]))]


def text(each):
    """Return a table as it is printed."""
    lines = [each["columns"], *cells(each)] if each["rows"] else []
    widths = [max(map(len, column)) for column in zip(*lines)]
    right = figures(each)
    shown = ["  ".join(value.rjust(width) if to_right else value.ljust(width)
                       for value, width, to_right in zip(line, widths, right)
                       ).rstrip() for line in lines]
    return "\n".join([each["title"], *shown, *each["notes"]])


def markdown(each):
    """Return a table as Markdown, its notes as a list below it."""
    def line(values):
        return "| " + " | ".join(value.replace("|", "\\|")
                                 for value in values) + " |"

    lines = [f"**{each['title']}**", ""]
    if each["rows"]:
        lines += [line(each["columns"]), line("---:" if to_right else "---"
                                              for to_right in figures(each))]
        lines += [line(row) for row in cells(each)] + [""]
    if each["notes"]:
        lines += [f"- {note}" for note in each["notes"]] + [""]
    return "\n".join(lines)


def spread(values, interval):
    """Return the median and its interval as two cells."""
    low, high = interval(values)
    return statistics.median(values), f"{low:.3f}..{high:.3f}"
