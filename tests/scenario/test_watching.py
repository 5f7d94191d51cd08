# SPDX-License-Identifier: BSD-3-Clause
#
# What packaging/ has for those who watch servers: the alerts, under promtool and its
# tests of rules, and the dashboard. Every metric that they name is in a real scrape.

import json
import re
from pathlib import Path

import pytest

from lib import neighbour, servers, tls, web
from test_metrics import work

PACKAGING = servers.TOP / "packaging"
RULES = PACKAGING / "prometheus/bloomery.rules.yml"
CASES = PACKAGING / "prometheus/bloomery.rules.test.yml"
DASHBOARD = PACKAGING / "grafana/bloomery.json"
PAGE = PACKAGING / "doc/watching.md"


@pytest.fixture
def scraped(start_server, tmp_path):
    """The names of all samples of a primary with TLS and its replica, which work, and
    of a sidecar."""
    made = neighbour.Neighbour()
    sidecar = web.Web(start_server, "--sidecar-of", made.address, *neighbour.EMPTY)
    neighbour.wait_lease(sidecar.server)
    certs = tls.Files(tmp_path).options(servers.free_port())
    primary, replica = (web.Web(start_server, *options) for options in (
        (*certs, "--metrics-filters", "*", "--metrics-show-keys", "yes"), ()))
    with replica.server.conn() as conn:
        conn.call("REPLICAOF", "127.0.0.1", primary.server.port)
    work(primary.server)
    servers.wait_until(
        lambda: {"bloomery_replica_lag_bytes", "bloomery_filter_error_rate"} <=
        web.names(primary.ask().text) and
        replica.values().get("bloomery_primary_link_up") == 1, 20, "a replica")
    yield set.union(*(web.names(site.ask().text)
                      for site in (primary, replica, sidecar)))
    made.close()


def named(text):
    return set(re.findall(r"\bbloomery_[a-z0-9_]+", text))


def alerts():
    return re.findall(r"- alert: (\w+)", RULES.read_text())


def test_promtool_takes_the_rules():
    got = web.promtool("check", "rules", "--lint=all", "--lint-fatal", RULES)
    assert got.returncode == 0, got.stdout.decode()
    assert b"%d rules found" % len(alerts()) in got.stdout


def test_each_alert_fires_when_it_should():
    got = web.promtool("test", "rules", CASES)
    assert got.returncode == 0, got.stdout.decode()


def test_each_alert_has_a_case_where_it_fires_and_one_where_not():
    text = CASES.read_text()
    assert alerts()
    for name in alerts():
        assert re.search(r"\{eval_time: \w+, alertname: %s\}" % name, text), name
        assert re.search(r"alertname: %s\n +exp_alerts:\n +- exp_labels" % name,
                         text), name


def test_a_case_that_is_wrong_is_found(tmp_path):
    (tmp_path / RULES.name).write_text(RULES.read_text().replace("== 1", "== 2"))
    (tmp_path / CASES.name).write_text(CASES.read_text())
    assert web.promtool("test", "rules", tmp_path / CASES.name).returncode != 0


def test_the_alerts_name_metrics_that_exist(scraped):
    assert named(RULES.read_text()) - {"bloomery_"} <= scraped


def expressions(dashboard):
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]
    for annotation in dashboard["annotations"]["list"]:
        yield annotation["name"], annotation["expr"]


def test_the_dashboard_names_metrics_that_exist(scraped):
    dashboard = json.loads(DASHBOARD.read_text())
    found = list(expressions(dashboard))
    assert len(found) > 40
    for title, expr in found:
        assert named(expr) and named(expr) <= scraped, (title, expr)
    assert named(json.dumps(dashboard["templating"])) <= scraped


def test_prometheus_can_parse_every_expression_of_the_dashboard(tmp_path):
    """As rules, since promtool of Debian 12 checks no single expression."""
    lines = ["groups:", "- name: g", "  rules:"]
    for i, (_, expr) in enumerate(expressions(json.loads(DASHBOARD.read_text()))):
        expr = expr.replace("$__rate_interval", "1m").replace("$instance", ".*")
        assert "$" not in expr
        lines += ["  - record: r%d" % i, "    expr: %s" % json.dumps(expr)]
    rules = tmp_path / "r.yml"
    rules.write_text("\n".join(lines) + "\n")
    got = web.promtool("check", "rules", rules)
    assert got.returncode == 0, got.stdout.decode()


def test_the_dashboard_is_whole():
    dashboard = json.loads(DASHBOARD.read_text())
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = set()
    for panel in panels:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24, panel["title"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"])
                 for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & places, panel["title"]
        places |= cells
        if panel["type"] != "row":
            assert panel["datasource"]["uid"] == "${datasource}"


def test_the_page_names_every_alert_and_only_metrics_that_exist(scraped):
    page = PAGE.read_text()
    assert set(re.findall(r"\bBloomery[A-Z]\w+", page)) == set(alerts())
    assert named(page) <= scraped | {
        name[:-len(end)] for name in scraped for end in ("_bucket", "_total")
        if name.endswith(end)}


def test_prometheus_takes_the_configurations_of_the_page(tmp_path):
    blocks = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    assert len(blocks) == 2
    for block in blocks:
        (tmp_path / "prometheus.yml").write_text(block)
        got = web.promtool("check", "config", tmp_path / "prometheus.yml")
        assert got.returncode == 0, got.stdout.decode()


def test_make_install_has_the_files():
    """tests/scenario/test_build.py installs and removes them."""
    makefile = Path(servers.TOP / "Makefile").read_text()
    for path in (RULES, DASHBOARD):
        assert "%s:share/bloomery/" % path.relative_to(servers.TOP) in makefile
