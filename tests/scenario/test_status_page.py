# SPDX-License-Identifier: BSD-3-Clause
#
# The status page at metrics-port: its figures as JSON, and the page itself in a
# headless Chromium (Debian's chromium, chromium-driver and python3-selenium, which
# `make check` installs; without them those tests are skipped).

import json
import re
import shutil
import threading
import time

import pytest

from lib import neighbour, servers, web
from lib.neighbour import A, B, node

FACTOR = servers.time_factor()
PAGE = servers.TOP / "src/info/status.html"
WIDTHS = {"phone": (390, 844), "desk": (1280, 900), "wall": (1920, 1080)}


@pytest.fixture
def start_web(start_server):
    return lambda *options, **kwargs: web.Web(start_server, *options, **kwargs)


@pytest.fixture
def made():
    made = neighbour.Neighbour()
    yield made
    made.close()


@pytest.fixture
def start_sidecar(start_web, made):
    """A sidecar that serves the lower half of the slots, beside a node of the test."""
    def start(*options):
        def say(port):
            made.say(nodes=[node(A, port, "myself,master", slots="0-8191"),
                            node(B, 29999, slots="8192-16383")])

        say(29998)  # it never sees slots that move: they would wait for their owner
        site = start_web("--sidecar-of", made.address, *neighbour.EMPTY, *options)
        say(site.server.port)
        neighbour.wait_lease(site.server)
        neighbour.wait_served(site.server, 8192)
        return site
    return start


class Load:
    """A small load until the end of the test, bounded by its pauses."""

    def __init__(self, server):
        self.server, self.ends = server, threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        with self.server.conn() as conn:
            number = 0
            while not self.ends.is_set():
                number += 1
                conn.pipeline([("BF.ADD", "seen", "item:%d:%d" % (number, i))
                               for i in range(20)] +
                              [("BF.EXISTS", "seen", "x"), ("BF.NOPE",)])
                self.ends.wait(0.01)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        self.thread.join()


# ---- the document ----------------------------------------------------------

def test_the_document_has_the_figures_of_info(start_web):
    site = start_web()
    with site.server.conn() as conn:
        conn.call("BF.RESERVE", "a", "0.01", "1000")
        conn.call("BF.MADD", "a", "x", "y", "z")
        conn.call("NOPE")
    # A loop counts a call after it has sent the reply.
    got = servers.wait_until(
        lambda: (d := site.status())["totals"]["errors"] == 1 and
        d["filters"]["items"] == 3 and len(d["commands"]) >= 2 and
        sum(count for _, count in d["latency_ns"]) >= 2 and d, 10, "all calls")
    assert site.ask("/status.json").getheader("Content-Type") == "application/json"
    assert got["filters"] == {"keys": 1, "objects": 1, "layers": 1, "items": 3,
                              "capacity": 1000, "bytes": got["filters"]["bytes"]}
    assert {"BF.RESERVE", "BF.MADD"} <= {c["name"] for c in got["commands"]}
    assert got["persistence"]["journal"] == "on"
    assert got["replication"]["replica"] is False
    assert got["loading"] is False


def test_names_are_hidden_unless_the_option_shows_them(start_web):
    site = start_web()
    with site.server.conn() as conn:
        conn.call("BF.ADD", b'se\xff"cret<b>', "x")
        servers.wait_until(lambda: site.status()["ranking"]["biggest"], 5, "a filter")
        assert "cret" not in site.ask("/status.json").text
        assert site.status()["ranking"]["names"] is False
        conn.call("CONFIG", "SET", "metrics-show-keys", "yes")
        names = servers.wait_until(
            lambda: [f.get("name") for f in site.status()["ranking"]["biggest"]
                     if "name" in f], 5, "names")
    assert names == ['se\\xff"cret<b>']


def test_metrics_by_filter_need_both_options(start_web):
    site = start_web("--metrics-filters", "u*")
    with site.server.conn() as conn:
        conn.call("BF.RESERVE", b'u"s\xff\\', "0.01", "100", "NONSCALING")
        conn.call("BF.RESERVE", "other", "0.01", "100")
        conn.call("BF.MADD", b'u"s\xff\\', "x", "y", "z")
        assert "bloomery_filter_" not in site.ask().text
        conn.call("CONFIG", "SET", "metrics-show-keys", "yes")
        found = servers.wait_until(
            lambda: "bloomery_filter_error_rate{" in (text := site.ask().text) and text,
            20, "a filter that is looked at")
        labels = '{db="0",filter="u\\"s\\\\xff\\\\\\\\",scaling="no"}'
        assert "bloomery_filter_items%s 3\n" % labels in found
        assert "bloomery_filter_capacity%s 100\n" % labels in found
        assert 'filter="other"' not in found
        conn.call("CONFIG", "SET", "metrics-filters", "")
        servers.wait_until(lambda: "bloomery_filter_" not in site.ask().text, 5, "none")


def test_the_ranking_finds_the_biggest_among_many_in_bounded_steps(start_web):
    site = start_web("--metrics-show-keys", "yes", "--appendonly", "no")
    with site.server.conn() as conn:
        for start in range(0, 5000, 500):
            conn.pipeline([("BF.RESERVE", "k%d" % i, "0.01", 100 + i)
                           for i in range(start, start + 500)])
    seen = [site.status()["ranking"]["seen"]]

    def complete():
        ranking = site.status()["ranking"]
        if ranking["rounds"] == 0 and ranking["seen"] != seen[-1]:
            seen.append(ranking["seen"])
        return ranking["rounds"] > 0 and ranking

    ranking = servers.wait_until(complete, 60, "a round")
    assert len(seen) >= 3
    # A step of the walk may pass the bound by what is in one bucket.
    assert all(b - a <= 1000 + 64 for a, b in zip(seen, seen[1:]))
    sizes = [f["bytes"] for f in ranking["biggest"]]
    assert sizes == sorted(sizes, reverse=True) and len(sizes) == 8
    assert ranking["biggest"][0]["capacity"] > 5000


def test_many_readers_cost_one_document(start_web):
    site = start_web()
    texts = {site.ask("/status.json").text for _ in range(3)}
    began = time.monotonic()
    texts = {site.ask("/status.json").text for _ in range(20)}
    assert len(texts) <= 2 + (time.monotonic() - began) / 0.5


def test_a_sidecar_has_the_figures_of_info_cluster(start_sidecar, start_web):
    assert "cluster" not in start_web().status()
    site = start_sidecar()
    with site.server.conn() as conn:
        assert str(conn.call("BF.ADD", "foo", "x")).startswith("MOVED")
    got = servers.wait_until(
        lambda: (c := site.status()["cluster"])["moved"] == 1 and c, 10, "a redirect")
    info = neighbour.figures(site.server)
    assert got["slots"] == {name: int(info["cluster_slots_" + name])
                            for name in got["slots"]}
    assert got["map"][:128] == "S" * 128 and "S" not in got["map"][128:]
    assert (got["up"], got["ok"], got["primary"], got["nodes"]) == (True, True, True, 2)
    assert 0 < got["lease_left_ms"] <= got["lease_ms"]
    assert got["silent"] == info.get("cluster_silent_addresses", "")
    assert got["transfers"] == {"count": 0, "done": 0, "failed": 0}


# ---- the page --------------------------------------------------------------

def test_the_page_needs_nothing_from_elsewhere(start_web):
    site = start_web()
    first, second = site.ask("/"), site.ask("/")
    assert first.status == 200
    assert first.getheader("Content-Type") == "text/html; charset=utf-8"
    policy = first.getheader("Content-Security-Policy")
    nonce = re.search(r"script-src 'nonce-([0-9a-f]{32})'", policy).group(1)
    assert "default-src 'none'" in policy and "connect-src 'self'" in policy
    assert "unsafe" not in policy and "http" not in policy
    assert first.text == PAGE.read_text().replace("@NONCE@", nonce)
    assert nonce not in second.text
    # Only the namespace of SVG and relative links; no inline handlers or styles.
    assert set(re.findall(r"https?://[^\s\"']+", first.text)) == \
        {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<[^>]*\s(on[a-z]+|style)=", first.text)
    assert "innerHTML" not in first.text


@pytest.fixture
def browse(tmp_path):
    webdriver = pytest.importorskip("selenium.webdriver")
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    driver, chromium = shutil.which("chromedriver"), shutil.which("chromium")
    if servers.sanitized():
        pytest.skip("the release build does it")
    if not driver or not chromium:
        pytest.skip("chromium or chromedriver is not installed")
    opened = []

    def browse(url, size="desk", dark=False):
        options = Options()
        options.binary_location = chromium
        width, height = WIDTHS[size]
        for argument in (
                "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
                "--no-first-run", "--disable-background-networking",
                "--disable-component-update", "--disable-sync",
                "--disable-dev-shm-usage",
                "--user-data-dir=%s" % (tmp_path / ("profile%d" % len(opened))),
                "--window-size=%d,%d" % (width, height)):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        page = webdriver.Chrome(service=Service(driver), options=options)
        opened.append(page)
        page.set_page_load_timeout(60 * FACTOR)
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
        page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1,
            "mobile": size == "phone"})
        page.get(url)
        return page

    yield browse
    for page in opened:
        page.quit()


def text(page, name):
    return page.execute_script(
        "return document.getElementById(arguments[0]).textContent", name)


def number(page, name):
    found = re.match(r"[0-9][0-9,.]*", text(page, name))
    return float(found.group().replace(",", "")) if found else None


def complaints(page):
    return [entry for entry in page.get_log("browser")
            if entry["level"] in ("SEVERE", "WARNING")]


def until(condition, what):
    return servers.wait_until(condition, 60, what, pause=0.1)


def test_figures_appear_and_change(start_web, browse):
    site = start_web("--metrics-show-keys", "yes")
    page = browse(site.url)
    until(lambda: text(page, "state") == "live", "the page is live")
    assert "no filters" in text(page, "big")
    assert text(page, "health") == "No problem is known."
    with Load(site.server):
        until(lambda: (number(page, "ops") or 0) > 50, "commands a second")
        until(lambda: text(page, "p99-note").startswith("median "), "latency")
        until(lambda: "seen" in text(page, "big"), "the filter")
        until(lambda: "BF.ADD" in text(page, "com"), "the command")
        assert "a second" in text(page, "ops-note")  # of errors
        first = number(page, "mem"), text(page, "rep")
        until(lambda: (number(page, "mem"), text(page, "rep")) != first, "changes")
        # A point of the server, and now, are a line.
        until(lambda: page.execute_script(
            "return (document.querySelector('#thr .stroke')?.getAttribute('d') ??"
            " '').split('L').length") >= 2, "a line of two points")
        assert "now" in page.execute_script(
            "return document.getElementById('thr').getAttribute('aria-label')")
    until(lambda: text(page, "ops") == "0", "the load has ended")
    assert complaints(page) == []


def test_a_point_without_neighbours_is_a_dot(start_web, browse):
    """As after a single command: an axis had a scale, and no curve."""
    page = browse(start_web().url)
    until(lambda: text(page, "state") == "live", "the page is live")
    assert page.execute_script("""
        chart("lat", [{ of: [null, 5, null, 7, 8], cls: "c1" }], 5, String, "label", "none");
        return [...document.querySelectorAll("#lat .c1")].map(e => e.getBBox().width > 0);
        """) == [False, True]


def test_the_page_says_that_the_server_has_gone_and_is_back(start_web, browse):
    site = start_web()
    page = browse(site.url)
    until(lambda: text(page, "state") == "live", "the page is live")
    site.server.stop()
    until(lambda: text(page, "state").startswith("not reached"), "it has gone")
    assert page.execute_script("return document.body.className") == "stale"


def test_trouble_is_named(start_web, browse):
    site = start_web()
    with site.server.conn() as conn:
        conn.call("REPLICAOF", "127.0.0.1", servers.free_port())
        page = browse(site.url)
        until(lambda: "The link to the primary is down" in text(page, "health"),
              "the link")
        assert text(page, "facts").startswith("Replica")
        assert "never" in text(page, "rep")    # heard of its primary
        conn.call("REPLICAOF", "NO", "ONE")
    until(lambda: text(page, "health") == "No problem is known.", "it leads")


def test_reasons_are_named(start_web, start_server, browse):
    """Of a link that is down, of a lost replica, and of a snapshot and a journal on a
    full disk: the page, INFO and the document have the same words."""
    site, replica = start_web(), start_server()
    with replica.conn() as conn:
        conn.call("REPLICAOF", "127.0.0.1", site.server.port)
    servers.wait_until(lambda: [r["online"] for r in site.status()["replication"]
                                ["replicas"]] == [True], 20, "a replica")
    assert site.status()["replication"]["lost"] is None
    page = browse(site.url)
    replica.kill()
    name = "127.0.0.1:%d" % replica.port
    until(lambda: "Replica %s was lost" % name in text(page, "health"), "it is lost")
    lost = site.status()["replication"]["lost"]
    assert lost["replica"] == name and lost["reason"]
    assert lost["reason"] in text(page, "health")
    with site.server.conn() as conn:
        assert ("replica_lost:%s: %s" % (name, lost["reason"])) in \
            conn.call("INFO", "replication").decode()
        conn.call("CONFIG", "RESETSTAT")
    until(lambda: text(page, "health") == "No problem is known.", "it is forgotten")
    page.execute_script("""
        const d = structuredClone(last), p = d.persistence;
        p.save_ok = p.rewrite_ok = false; p.journal = "faulted";
        p.save_error = p.journal_error = p.rewrite_error = "No space left on device";
        show(d);
    """)
    assert text(page, "health").count(": No space left on device.") == 3


def shown(page, name):
    return page.execute_script(
        "return document.getElementById(arguments[0]).getClientRects().length > 0", name)


def test_a_server_without_a_cluster_shows_none(start_web, browse):
    page = browse(start_web().url)
    until(lambda: text(page, "state") == "live", "the page is live")
    assert not shown(page, "clu-card")


def test_slots_and_lease_appear_and_change(start_sidecar, made, browse):
    site = start_sidecar()
    page = browse(site.url)
    until(lambda: "served here 8,192" in text(page, "clu-slots"), "slots")
    assert shown(page, "clu-card") and "ms left" in text(page, "clu-lease")
    assert text(page, "health") == "No problem is known."
    assert "8192 served here" in page.execute_script(
        "return document.getElementById('clu-map').getAttribute('aria-label')")
    with site.server.conn() as conn:
        conn.pipeline([("BF.EXISTS", "foo", "x")] * 100)
    until(lambda: not text(page, "clu-moves").startswith("MOVED, ASK0/s"), "redirects")
    made.say(nodes=[node(A, site.server.port, "myself,master", slots="0-4095")],
             state="fail")
    until(lambda: "12,288 slots of the cluster have no owner" in text(page, "health"),
          "slots without an owner")
    assert "says that the cluster is down" in text(page, "health")
    made.close()
    until(lambda: "does not answer" in text(page, "health"), "the neighbour has gone")
    assert "none" in text(page, "clu-lease")
    assert complaints(page) == []


def test_every_trouble_of_slots_is_named(start_sidecar, browse):
    """Figures that the page shows as if the server had sent them."""
    page = browse(start_sidecar().url)
    until(lambda: text(page, "state") == "live", "the page is live")
    said = page.execute_script("""
        const d = structuredClone(last), c = d.cluster;
        c.slots.missing = 3; c.slots.held = 2; c.slots.pulled = 1; c.lease_left_ms = 0;
        c.silent = "10.0.0.2:8002";
        c.map = "mhp" + c.map.slice(3);
        c.transfers = { count: 2, state: "loads", source: "10.0.0.1:8001", slots: 30,
            bytes: 5242880, age_ms: 700000, done: 1, failed: 0 };
        show(d);
        return ["health", "clu-slots", "clu-moves"].map(id => $(id).textContent)
            .concat([...document.querySelectorAll("#clu-map rect")].slice(0, 3)
                .map(e => e.getAttribute("class")));
    """)
    assert said[3:] == ["m-missing", "m-held", "m-moves"]
    for part in ("There is no lease", "3 slots of this server are without data: no "
                 "server that answers has it. Silent: 10.0.0.2:8002.",
                 "2 slots are being handed over", "has taken 12 min"):
        assert part in said[0], said
    assert "without data 3" in said[1] and "on their way here 1" in said[1]
    assert "loads: 30 slots of 10.0.0.1:8001, 5 MiB, 12 min; 1 wait" in said[2]


def test_hostile_names_are_text(start_web, browse):
    site = start_web("--metrics-show-keys", "yes")
    name = '<img src=x onerror="document.title=1"></script><b>"\'&amp;'
    with site.server.conn() as conn:
        conn.call("BF.ADD", name, "x")
    page = browse(site.url)
    until(lambda: name in text(page, "big"), "the name")
    assert page.execute_script(
        "return document.querySelectorAll('#big b, #big img').length") == 0
    assert page.title.endswith(":%d – Bloomery" % site.server.port)


CONTRAST = """
const parse = c => c.match(/[\\d.]+/g).map(Number);
const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(
    v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const behind = e => { for (; e; e = e.parentElement) {
    const c = parse(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] === 1) return c; } return [255, 255, 255]; };
const bad = [];
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
    const e = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || ['SCRIPT', 'STYLE'].includes(e.tagName) ||
        !e.getClientRects().length) continue;
    const a = light(parse(getComputedStyle(e).color)), b = light(behind(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.push([walk.currentNode.data.trim(), ratio]);
}
return bad;
"""

LABELS = """
return [...document.querySelectorAll('svg[role], progress, section, [role=status]')]
    .filter(e => !(e.getAttribute('aria-label') || e.id === 'state' ||
        document.getElementById(e.getAttribute('aria-labelledby'))?.textContent))
    .map(e => e.outerHTML.slice(0, 80));
"""


@pytest.mark.parametrize("size", sorted(WIDTHS))
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("sidecar", [False, True], ids=["alone", "sidecar"])
def test_it_fits_and_can_be_read(start_web, start_sidecar, browse, size, dark, sidecar):
    site = (start_sidecar if sidecar else start_web)("--metrics-show-keys", "yes")
    with site.server.conn() as conn:
        conn.call("BF.RESERVE", "{bar}a:very:long:name:" + "x" * 150, "0.01", "2000000")
        for i in range(10):
            conn.call("BF.RESERVE", "{bar}%d" % i, "0.001", 10 ** (i % 6 + 1))
            conn.pipeline([("BF.ADD", "{bar}%d" % i, j) for j in range(i * 10)])
        for words in ("NOPE", "PING", "DBSIZE", "TTL bar", "EXISTS bar", "BF.CARD bar",
                      "BF.INFO bar", "BF.STATS bar", "INFO", "ECHO x", "TYPE bar"):
            conn.call(*words.split())
    page = browse(site.url, size, dark)
    until(lambda: "a:very:long" in text(page, "big"), "filters")
    width, height = WIDTHS[size]
    assert page.execute_script(
        "return document.documentElement.scrollWidth") <= width
    # Nothing sticks out of its card, and tables need no scrolling sideways.
    assert page.execute_script(
        "return [...document.querySelectorAll('.card, .scroll')].filter("
        "e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent.slice(0, 40))"
    ) == []
    if size == "wall":
        assert page.execute_script(
            "return document.documentElement.scrollHeight") <= height, "with its footer"
    assert page.execute_script(CONTRAST) == []
    assert page.execute_script(LABELS) == []
    assert page.execute_script("return document.documentElement.lang") == "en"
    background = page.execute_script(
        "return getComputedStyle(document.body).backgroundColor")
    assert (max(map(int, re.findall(r"\d+", background))) < 64) == dark
    assert complaints(page) == []


def test_the_document_is_small(start_web):
    site = start_web()
    with site.server.conn() as conn:
        for i in range(100):
            conn.call("BF.ADD", "k%d" % i, "x")
    assert len(json.dumps(site.status())) < 16 * 1024
