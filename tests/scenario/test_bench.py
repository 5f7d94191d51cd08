# SPDX-License-Identifier: BSD-3-Clause
#
# The report of the benchmarks: how it shows the tables of its parts, and handles
# missing parts and modules that do not load. Only the last tests measure anything;
# they check that figures and the report are written, and need the programs of
# `make bench`.
"""The benchmarks' report."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
BENCH = TOP / "bench"
sys.path.append(str(BENCH))

import callprofile  # noqa: E402  pylint: disable=wrong-import-position
import compare  # noqa: E402  pylint: disable=wrong-import-position
import modules  # noqa: E402  pylint: disable=wrong-import-position
import peers  # noqa: E402  pylint: disable=wrong-import-position
import pins  # noqa: E402  pylint: disable=wrong-import-position
import plots  # noqa: E402  pylint: disable=wrong-import-position
import report  # noqa: E402  pylint: disable=wrong-import-position
import shapes  # noqa: E402  pylint: disable=wrong-import-position
import tables  # noqa: E402  pylint: disable=wrong-import-position

BUILD = pathlib.Path(os.environ.get(
    "BLOOMERY_SERVER", TOP / "build" / "release" / "bloomery-server")).parent


def test_a_table_needs_only_columns_and_rows(tmp_path):
    file = tmp_path / "one.json"
    file.write_text(json.dumps({"columns": ["rate", "text"],
                                "rows": [[0.01, "a|b"], [None, True]]}))
    found = tables.load(file)
    assert tables.markdown(found[0]).splitlines()[2:] == [
        "| rate | text |", "| ---: | --- |", "| 0.01 | a\\|b |",
        "| – | yes |"]
    tables.save(file, found)
    assert tables.load(file) == found
    file.write_text('[{"columns": []}]')
    with pytest.raises(ValueError, match="table 1"):
        tables.load(file)


def test_numbers_of_a_column_have_the_same_digits():
    found = tables.table("", "", ["ns"], [[1234.5], [6.78], [0.04]])
    assert tables.cells(found) == [["1,234"], ["7"], ["0.04"]]


def test_the_interval_of_eleven_pairs_omits_one_at_each_end():
    assert compare.interval(range(11)) == (1, 9)
    assert compare.interval([3, 1, 2]) == (1, 3)


def test_lines_with_the_same_mark_are_summed_up():
    marks = compare.summary([
        ["TCP", "small", "add", 16, 400, 440, 1.1, 1.12],
        ["TCP", "small", "exists", 16, 400, 460, 1.15, 1.12],
        ["TCP", "large", "add", 1, 7000, 7000, 1.0, None]])
    assert [(mark["asked"], mark["measured"], mark["met"])
            for mark in marks] == [("≤ 1.12", "1.10 and 1.15", False)]


def test_inlined_lines_count_where_they_are_written(tmp_path):
    path = "base/metrics.h"
    first, last, name = next(
        entry for entry in callprofile.functions_of(path)
        if entry[2] == "metric_add")
    profile = tmp_path / "callgrind.out"
    profile.write_text(
        "events: Ir\n\n"
        "fl=(1) /elsewhere/src/engine/dispatch.c\nfn=(7) dispatch_batch\n"
        f"1 10\nfi=(2) /elsewhere/src/{path}\n{first + 1} 5\n"
        f"+{last - first - 2} 2\nfe=(1)\n"
        "cfi=(3) /lib/other.c\ncfn=(8) memcpy\ncalls=1 3\n* 900\n"
        "fl=(3)\nfn=(8)\n3 900\n")
    costs = callprofile.read(profile)
    assert costs[f"{path}:{name}"] == 7
    assert costs["libraries:memcpy"] == 900
    assert sum(costs.values()) == 917


@pytest.mark.parametrize("server, count, says", [
    ("bloomery", 101.9, None),
    ("bloomery", 95.1, None),
    ("bloomery", 106.4, "6.4 % more than the pin, 100. If that is meant, set "
                        "the pin to 106 in"),
    ("bloomery", 94, "6.0 % fewer than the pin, 100."),
    ("null", 50, None),
    ("null", 101, "allowed are 100."),
])
def test_a_pin_breaks_both_ways_and_a_limit_only_upwards(server, count, says):
    result, broken = pins.compare([(server, "BF.ADD", 16, count, 100)])
    assert result["rows"][0][:3] == ["BF.ADD", 16, count]
    assert [says in text for text in broken] == ([True] if says else [])


@pytest.mark.skipif(not plots.available(), reason="gnuplot is not installed")
def test_plots_need_their_table(tmp_path):
    found = {"scaling": tables.table("scaling", "", ["loops", "one \"filter\""],
                                     [[1, 1.0], [2, None], [4, 3.5]])}
    picture = plots.draw("scaling", found, tmp_path)
    assert "one &quot;filter&quot;" in picture.read_text() \
        or 'one "filter"' in picture.read_text()
    assert plots.draw("memory", found, tmp_path) is None


def test_the_readme_shows_the_kept_figures(tmp_path):
    figures = json.loads((BENCH / "modules.json").read_text())
    assert modules.table(figures) in (TOP / "README.md").read_text()
    for theme in ("light", "dark"):
        kept = (BENCH / "plots" / ("modules-%s.svg" % theme)).read_text()
        assert modules.draw(figures, theme) == kept, "make plots"


def test_measured_figures_are_drawn_as_the_kept_ones_are(tmp_path):
    table = tables.table("peers-module", "", ["workload", "Bloomery", "theirs", "times", ""])
    for command, pipeline in peers.BESIDE_MODULE:
        many = " of 100" if command.startswith("m") else ""
        table["rows"].append(["BF.%s%s, pipeline %d" % (command.upper(), many, pipeline),
                              100.0, 250.0, 2.5, ""])
    tables.save(tmp_path / "found.json", [table])
    subprocess.run([BENCH / "modules.py", "--measured", tmp_path / "found.json",
                    "--into", tmp_path], check=True)
    picture = (tmp_path / "modules-light.svg").read_text()
    assert picture.count(">2.5<") == 8 and "batches of 100, pipelines of 16" in picture


@pytest.mark.parametrize("script", ["peers.py", "classics.py", "report.py"])
@pytest.mark.parametrize("name, path, says", [
    ("BENCH_MODULE", "/nowhere/bf.so", "BENCH_MODULE=/nowhere/bf.so: no such"),
    ("BENCH_SERVER", "/nowhere/server", "BENCH_SERVER=/nowhere/server: no"),
])
def test_a_wrong_path_of_a_peer_is_reported(script, name, path, says):
    done = subprocess.run([sys.executable, BENCH / script, "--quick"],
                          env={**os.environ, name: path}, text=True,
                          stderr=subprocess.PIPE, timeout=60, check=False)
    assert done.returncode == 1 and says in done.stderr


@pytest.mark.skipif(peers.find("redis-server") is None,
                    reason="no redis-server: tests/peers fetches it")
def test_a_file_that_is_no_module_is_reported(tmp_path):
    module = tmp_path / "bf.so"
    module.write_text("not a module")
    done = subprocess.run([sys.executable, BENCH / "classics.py", "--quick"],
                          env={**os.environ, "BENCH_MODULE": str(module)},
                          text=True, stderr=subprocess.PIPE, timeout=120,
                          check=False)
    assert done.returncode == 1
    assert f"BENCH_MODULE={module}: redis-server does not load it" in done.stderr


def test_answers_come_in_the_order_of_their_questions(tmp_path):
    def part(name, sentence):
        found = tables.table(name, "", ["x"])
        found["says"].append(sentence)
        return [found], "", None

    args = report.argparse.Namespace(out=tmp_path)
    text = report.answers(args, {"replica": part("r", "A replica is cheap."),
                                 "holds": part("h", "No question is mine."),
                                 "cost": part("c", "It is fast.")}, tmp_path)
    assert text.splitlines()[2:] == [
        "**How fast is it?**", "", "- It is fast.", "",
        "**What does a replica cost?**", "", "- A replica is cheap."]


def test_plain_data_of_memory_becomes_tables_and_marks():
    left = {"way": "DEL", "keys": 1000, "start_rss": 10 << 20,
            "full_rss": 20 << 20, "left_rss": 11 << 20,
            "allowed_rss": 28 << 20, "after_s": 15, "met": True}
    bits, plot, small = shapes.memory({
        "items": 1000, "left": [left],
        "bits": [{"rate": 0.01, "bits": 10.9, "least": 9.6, "met": False,
                  "overhead": 0.135, "measured": 0.0099}],
        "small": {"rss": 250.4, "used": 240.0, "mark": 278, "met": True}})
    assert bits["marks"][0]["met"] is False
    assert bits["marks"][0]["measured"] == "13.5% at most"
    assert plot["rows"] == [[0.01, 10.9, 9.6]] and plot["hidden"]
    assert small["rows"] == [["DEL", 10.0, 20.0, 11.0, 28.0]]
    assert [mark["met"] for mark in small["marks"]] == [True, True]


def test_plain_data_of_scaling_and_holds_becomes_tables_and_marks():
    row = {"workload": "add-one", "pipeline": 16, "threads": 2,
           "locks": "yes", "rate": 2e7, "cpu_ns": 90.0, "ratio": 1.6,
           "control": 1.9, "relative": 1.68}
    inside, plot = shapes.scaling({"inside": [row], "sockets": []})
    assert [mark["met"] for mark in inside["marks"]] == [False]
    assert plot["rows"] == [[1, 1.0], [2, 1.68]]
    case = {"case": "DEL of 4 GiB", "handler": "del", "handler_usec": 300,
            "lock": "del", "lock_usec": 2100, "note": "pages", "met": False}
    found, = shapes.holds({"cases": [case]})
    assert found["marks"][0]["measured"] == \
        "2.10 ms (DEL of 4 GiB), 1 of 1 cases over"
    assert found["notes"][:-1] == ["DEL of 4 GiB: pages"]


@pytest.mark.parametrize("longest, met", [(700, True), (600, False)])
def test_the_time_of_page_faults_is_not_the_servers(longest, met):
    case = {"case": "first touch", "handler": "BF.ADD", "handler_usec": 2100,
            "lock": "BF.ADD", "lock_usec": 2000, "note": "pages",
            "kind": "fault", "met": False}
    found, = shapes.holds({"cases": [case], "fault_usec": {
        "median": 500.0, "p90": 550.0, "longest": longest}})
    mark, = found["marks"]
    assert mark["met"] is met
    assert "2.10 ms" in mark["measured"] and "0.50 ms" in mark["measured"]


def test_a_part_that_fails_or_is_missing_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "BENCH", tmp_path)
    (tmp_path / "holds.py").write_text("import sys; sys.exit('no clock')")
    args = report.argparse.Namespace(build=BUILD, quick=True)
    assert report.run(args, "holds", tmp_path) == ([], "", "no clock")
    assert report.run(args, "memory", tmp_path)[2] == "memory.py is not there"


NEEDS_PROGRAMS = pytest.mark.skipif(
    not all((BUILD / "bench" / name).exists()
            for name in ("load", "micro", "null", "pulse")),
    reason="make bench has not built its programs")


def classics(file, *options, **environment):
    """Run classics.py as a smoke test; return its tables by name."""
    done = subprocess.run(
        [sys.executable, BENCH / "classics.py", "--quick", "--build", BUILD,
         "--json", file, *options], env={**os.environ, **environment}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300,
        check=False)
    assert done.returncode == 0, done.stdout
    return {each["name"]: each for each in tables.load(file)}


@NEEDS_PROGRAMS
def test_the_quoted_benchmarks_run(tmp_path):
    found = classics(tmp_path / "all.json")
    with_redis = peers.find("redis-server") is not None
    ways = {row[0] for row in found["classics-methods"]["rows"]}
    assert ways == ({"Bloomery", "7 SETBIT or GETBIT", "Lua, the client hashes",
                     "Lua, the script hashes"} if with_redis else {"Bloomery"})
    assert all(value > 0 for row in found["classics-methods"]["rows"]
               for value in (row[2], row[5]))
    # Whatever the machine does: scripts and bitmaps cost several times as much.
    times = {tuple(row[:2]): (float(row[3]), float(row[6]))
             for row in found["classics-methods"]["rows"]}
    assert all(ratio > 2 for (way, batch), ratios in times.items()
               for ratio in ratios if way != "Bloomery" and batch == 100)
    for name in ("users", "large", "feed"):
        table = found[f"classics-{name}"]
        assert len(table["rows"]) >= (2 if with_redis else 1), table
    assert found["classics-feed"]["says"][0].startswith("A feed that asks 18,000")
    clients = found["classics-clients"]
    assert clients["rows"] or "eft out" in " ".join(clients["notes"])
    assert found["classics-published"]["rows"]


@NEEDS_PROGRAMS
def test_another_server_with_the_commands_gets_lines_of_its_own(tmp_path):
    # A second Bloomery stands in for a server with a module.
    found = classics(tmp_path / "two.json", "--case", "methods", "--case", "large",
                     BENCH_SERVER=str(BUILD / "bloomery-server"))
    for name, lines in (("methods", 6), ("large", 2)):
        rows = found[f"classics-{name}"]["rows"]
        assert len(rows) == lines
        assert [row[0].startswith("bloomery-server") for row in rows] \
            == [False, True] * (lines // 2)


@NEEDS_PROGRAMS
def test_the_report_is_written(tmp_path):
    done = subprocess.run(
        [sys.executable, BENCH / "report.py", "--quick", "--part", "bgsave",
         "--part", "filter", "--build", BUILD, "--out", tmp_path], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120,
        check=False)
    assert done.returncode == 0, done.stdout
    text = (tmp_path / "RESULTS.md").read_text()
    assert "## Latency during BGSAVE" in text and "The longest time under a lock" in text
    if shutil.which("gnuplot"):
        assert (tmp_path / "plots" / "bgsave.svg").exists()
