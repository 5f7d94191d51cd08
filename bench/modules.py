#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
#
# Draws how many times the CPU of Bloomery the fastest server with a module takes, for
# the README: plots/modules-light.svg and plots/modules-dark.svg. The figures are kept
# in modules.json, with their date, commit and versions. `--measured` draws the tables
# that `peers.py --json` has written instead. `--table` prints the README's table.
"""Draw the comparison with the modules."""

import argparse
import json
import pathlib
import re
import sys
from xml.sax.saxutils import escape

HERE = pathlib.Path(__file__).resolve().parent
KEPT = HERE / "modules.json"
KINDS = ("ADD", "EXISTS")
# Text, faint text, lines, and one colour for each kind: 4.5:1 or more for the texts.
COLOURS = {
    "light": ("#1f2328", "#59636e", "#d1d9e0", ("#0072b2", "#b34700")),
    "dark": ("#f0f6fc", "#9198a1", "#3d444d", ("#56b4e9", "#e69f00")),
}
WIDTH, LEFT, RIGHT, TOP, ROW, BAR = 800, 280, 70, 74, 46, 16


def measured(tables):
    """Return figures in the form of modules.json from the tables of peers.py."""
    table = next(each for each in tables if each["name"] == "peers-module")
    rows = {}
    for name, ours, theirs, *_ in table["rows"]:
        command, many, pipeline = re.fullmatch(
            r"BF\.(?:M?)(ADD|EXISTS)( of 100)?, pipeline (\d+)", name).groups()
        of = "no pipeline" if pipeline == "1" else f"pipelines of {pipeline}"
        text = f"batches of 100, {of}" if many else of
        rows.setdefault(text, {"name": text})[command] = {
            "ours": ours, "theirs": theirs}
    return {"date": "measured now", "commit": "",
            "servers": {"ours": "Bloomery", "theirs": table["columns"][2]},
            "rows": list(rows.values())}


def ratio(figures):
    """Return the figure of the fastest other server as a multiple of ours."""
    others = [value for name, value in figures.items() if name != "ours"]
    return min(others) / figures["ours"]


def table(figures):
    """Return the ratios as a table for the README."""
    lines = ["| commands | add | ask |", "|---|---|---|"]
    lines += ["| %s | %.1f | %.1f |" % (
        row["name"], *(ratio(row[kind]) for kind in KINDS))
        for row in figures["rows"]]
    return "\n".join(lines)


def text(x, y, words, colour, size=14, anchor="start", bold=False):
    """Return one line of text."""
    weight = ' font-weight="600"' if bold else ""
    return (f'<text x="{x:.0f}" y="{y:.0f}" fill="{colour}" font-size="{size}" '
            f'text-anchor="{anchor}"{weight}>{escape(words)}</text>')


def draw(figures, theme):
    """Return the picture as SVG."""
    ink, faint, line, fills = COLOURS[theme]
    rows = figures["rows"]
    top = max(ratio(row[kind]) for row in rows for kind in KINDS)
    scale = (WIDTH - LEFT - RIGHT) / top
    bottom = TOP + ROW * len(rows)
    out = [text(16, 28, "CPU of the fastest server with a module, "
                "as a multiple of Bloomery's", ink, 17, bold=True)]
    for number, (kind, fill) in enumerate(zip(("add", "ask"), fills)):
        x = LEFT + 90 * number
        out.append(f'<rect x="{x}" y="43" width="14" height="14" fill="{fill}"/>')
        out.append(text(x + 20, 55, kind, ink))
    for place, row in enumerate(rows):
        y = TOP + ROW * place
        out.append(text(LEFT - 12, y + 22, row["name"], ink, anchor="end"))
        for number, (kind, fill) in enumerate(zip(KINDS, fills)):
            value = ratio(row[kind])
            at = y + (BAR + 1) * number
            out.append(f'<rect x="{LEFT}" y="{at}" width="{value * scale:.1f}" '
                       f'height="{BAR}" fill="{fill}"/>')
            out.append(text(LEFT + value * scale + 6, at + 13, f"{value:.1f}",
                            ink, 13))
    one = LEFT + scale
    out.append(f'<path d="M{one:.1f} {TOP - 6}V{bottom - 2}" stroke="{ink}" '
               'stroke-dasharray="3 3"/>')
    out.append(f'<path d="M{LEFT}.5 {TOP - 6}V{bottom - 2}" stroke="{line}"/>')
    out.append(text(one, bottom + 13, "1 = Bloomery", faint, 12, "middle"))
    words = ", ".join(filter(None, [
        figures["date"], figures["commit"] and f"commit {figures['commit']}"]))
    out.append(text(16, bottom + 36, f"{words}; one core, 50 connections. Others:",
                    faint, 12))
    names = [name for key, name in figures["servers"].items() if key != "ours"]
    for number in range(0, len(names), 2):
        out.append(text(16, bottom + 54 + 9 * number,
                        "; ".join(names[number:number + 2]), faint, 12))
    height = bottom + 66 + 9 * len(names)
    return ('<svg xmlns="http://www.w3.org/2000/svg" '
            f'width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
            'font-family="Helvetica, Arial, sans-serif">\n'
            + "\n".join(out) + "\n</svg>\n")


def main():
    """Draw, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measured", type=pathlib.Path, metavar="FILE",
                        help="tables of peers.py --json instead of modules.json")
    parser.add_argument("--into", type=pathlib.Path, default=HERE / "plots")
    parser.add_argument("--table", action="store_true",
                        help="print the ratios; draw nothing")
    args = parser.parse_args()
    figures = json.loads((args.measured or KEPT).read_text())
    if args.measured:
        figures = measured(figures)
    if args.table:
        print(table(figures))
        return 0
    args.into.mkdir(parents=True, exist_ok=True)
    for theme in COLOURS:
        (args.into / f"modules-{theme}.svg").write_text(draw(figures, theme))
    return 0


if __name__ == "__main__":
    sys.exit(main())
