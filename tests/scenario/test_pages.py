# SPDX-License-Identifier: BSD-3-Clause
#
# The pages for users: their links lead somewhere, also where they are installed, their index names each of them, the
# tables of sizing.md are what the server computes, and examples are quoted exactly.
# test_documents.py runs their command lines.

import os
import math
import re
import subprocess

import pytest

from lib import servers

DOC = servers.TOP / "packaging/doc"
PAGES = sorted(page for folder in (".", "bench", "src", "packaging/doc", "tests/clients",
                                   "tests/command", "tests/data")
               for page in (servers.TOP / folder).glob("*.md"))
IDS = [str(page.relative_to(servers.TOP)) for page in PAGES]
LINK = re.compile(r"\]\(([^()\s]+)\)")


def prose(page):
    """Returns the text of a page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)


def anchors(page):
    """Returns what a link can name behind # in a page, as GitHub makes it."""
    found = set()
    for title in re.findall(r"^#+ (.+)$", prose(page), re.M):
        title = LINK.sub("]", title).lower()
        name = re.sub(r"[^\w\- ]", "", title).replace(" ", "-")
        while name in found:
            name += "-1"
        found.add(name)
    return found


def broken(page):
    """Returns the links of a page that lead nowhere."""
    text = re.sub(r"`[^`\n]*`", "", prose(page))
    for link in LINK.findall(text):
        path, _, anchor = link.partition("#")
        to = (page.parent / path) if path else page
        if re.match(r"[a-z]+:", link):
            continue
        if not to.exists() or anchor and anchor not in anchors(to):
            yield link


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_every_link_leads_somewhere(page):
    assert not list(broken(page))


def test_every_link_of_the_installed_pages_leads_somewhere(tmp_path):
    subprocess.run(["make", "-C", str(servers.TOP), "install-doc", "PREFIX=/usr",
                    "DESTDIR=%s" % tmp_path], check=True, stdout=subprocess.DEVNULL,
                   env={k: v for k, v in os.environ.items() if not k.startswith("MAKE")})
    top = tmp_path / "usr/share/doc/bloomery-server"
    pages = {str(page.relative_to(top)): page for page in top.rglob("*.md")}
    assert {"README.md", "bench/RESULTS.md"} | {
        "packaging/doc/" + page.name for page in DOC.glob("*.md")} <= set(pages)
    for name, page in pages.items():
        assert not list(broken(page)), name
        source, code = servers.TOP / name, re.compile(r"^```.*?^```$", re.M | re.S)
        assert code.findall(page.read_text()) == code.findall(source.read_text()), name


def test_a_broken_link_is_found(tmp_path):
    page = tmp_path / "a.md"
    page.write_text("# One, `two`\n[a](#one-two) [b](#three) [c](a.md#one-two) [d](b.md)\n")
    assert list(broken(page)) == ["#three", "b.md"]


def test_the_index_names_every_page():
    named = set(LINK.findall((DOC / "README.md").read_text()))
    assert {page.name for page in DOC.glob("*.md")} - {"README.md"} <= named


def test_the_readme_is_short():
    assert len((servers.TOP / "README.md").read_text().split()) <= 900


def test_the_readme_installs_the_programs_that_it_runs():
    text = (servers.TOP / "README.md").read_text()
    named = re.search(r"`apt install \./build/deb/bloomery-\{(.*?)\}_\*\.deb`", text)[1]
    run = set(re.findall(r"^\$ (bloomery-\S+)", text, re.M))
    lists = servers.TOP / "packaging/debian"
    got = {line.rpartition("/")[2] for name in named.split(",")
           for line in (lists / ("bloomery-%s.install" % name)).read_text().splitlines()}
    assert run and run <= got


def plan_text(rate, capacity):
    return subprocess.run([servers.server_binary(), "--plan", rate, capacity], text=True,
                          stdout=subprocess.PIPE, check=True).stdout


def plan(rate, capacity):
    """Returns the layers that --plan prints, as [(capacity, bytes, bits, rate)]."""
    text = plan_text(rate, capacity)
    return [(int(c), int(b), float(bits), float(r)) for c, b, bits, r in re.findall(
        r"- capacity: (\S+)\n +bytes: (\S+)\n +bits-per-item: (\S+)\n"
        r" +error-rate: (\S+)\n", text)]


def table(head, page="sizing.md"):
    """Returns the rows of the table of a page whose first column has this head."""
    text = (DOC / page).read_text().split("| %s |" % head, 1)[1]
    rows = text.split("\n\n", 1)[0].split("\n")[2:]
    return [[cell.strip().replace(",", "") for cell in row.strip("|").split("|")]
            for row in rows]


def test_bytes_by_error_rate_are_what_the_server_plans():
    rows = table("error rate")
    assert len(rows) == 8
    for rate, size, bits, one_in in rows:
        first = plan(rate, "1000000")[0]
        assert (str(first[1]), "%.1f" % first[2]) == (size, bits), rate
        assert round(1 / float(rate)) == int(one_in)


def test_the_cost_of_growing_is_what_the_server_plans():
    rows = table("made for")
    assert len(rows) == 6
    for capacity, layers, *figures in rows:
        grown = plan("0.01", capacity)
        enough = next(n for n, layer in enumerate(grown) if layer[0] >= 1000000)
        assert enough + 1 == int(layers), capacity
        _, size, bits, rate = grown[enough]
        assert [str(size), "%.1f" % bits, "%.4f" % rate] == figures, capacity


def test_the_sizes_of_a_cluster_are_those_of_the_formulas():
    known = {"sqrt": math.sqrt}
    computed = 0
    for names, formula, example, _ in table("figure", "cluster.md"):
        formula = formula.strip("`")
        values = [float(value) for value in example.split("; ")]
        names = re.findall(r"`([^`]+)`", names)
        if formula:
            got = eval(formula, {"__builtins__": {}}, known)
            got = math.ceil(got) if names == ["most"] else got
            assert abs(got - values[0]) < 1, (names, got)
            values, computed = [got], computed + 1
        known.update(zip(names, values, strict=True))
    assert computed == 10
    assert known["filter"] == int(re.search(
        r"^bytes: (\d+)", plan_text("0.01", "1000000"), re.M).group(1))
    options = subprocess.run([servers.server_binary(), "--print=options"], text=True,
                             stdout=subprocess.PIPE, check=True).stdout
    assert known["buffers"] == 2 ** 20 * sum(
        int(re.search(r"^# %s = (\d+)mb" % name, options, re.M).group(1))
        for name in ("save-buffer-limit", "repl-backlog-size"))


def named(rows):
    """Returns the words in code of the first column."""
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row[0])]


def test_errors_and_figures_exist(start_server):
    printed = subprocess.run([servers.server_binary(), "--print=errors"], text=True,
                             stdout=subprocess.PIPE, check=True).stdout.splitlines()
    errors = named(table("error begins with", "trouble.md"))
    assert len(errors) >= 20
    for error in errors:
        assert any(line.startswith(error.rstrip(". ")) for line in printed), error
    replica = start_server("--replicaof", "127.0.0.1 1")
    with start_server().conn() as one, replica.conn() as other:
        info = one.call("INFO").decode() + other.call("INFO").decode()
    for figure in named(table("figure of `INFO`", "operating.md")):
        assert "\n%s:" % figure in info, figure


def test_pages_quote_the_examples_exactly():
    text = (DOC / "clients.md").read_text()
    names = re.findall(r"^\[examples/(\S+)\]", text, re.M)
    assert "seen.py" in names
    for name in names:
        code = (servers.TOP / "examples" / name).read_text().split("\n\n", 1)[1]
        assert code in text, name
