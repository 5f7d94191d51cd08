# SPDX-License-Identifier: BSD-3-Clause
#
# Fixtures of all behaviour tests. When a test ends, a fixture stops its servers
# and checks them (exit status, sanitizer reports). After a failure it also shows
# their logs.

import sys
import tempfile
import zlib
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from lib import cluster, replicas, servers, slot_copy, worlds  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--slow-share", type=int, default=1, metavar="N",
                     help="one in N of the slow tests, drawn by the run's seed")


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: left out by tests/run --quick")
    config.addinivalue_line("markers", "port: clients come by no socket")
    if not Path(servers.server_binary()).exists():
        raise pytest.UsageError("no server: %s (make all, or BLOOMERY_SERVER)"
                                % servers.server_binary())


# Files that take longest. They start first, so that none of them runs alone at the end.
LONG = ["cluster_moves", "crash", "memory", "faults", "load_follow", "documents",
        "out_of_memory", "merge", "status_page", "replication_faults",
        "replication_peers", "slot_transfer_faults", "cluster_planned", "adoption",
        "power_loss", "transcripts", "cluster_bed", "cluster", "sentinel"]


def is_drawn(item, share):
    """Whether a slow test runs when only one in `share` of them does."""
    name = "%d %s" % (worlds.seed_of_run(), item.nodeid)
    return item.get_closest_marker("slow") is None or \
        zlib.crc32(name.encode()) % share == 0


def pytest_collection_modifyitems(config, items):
    share = config.getoption("--slow-share")
    drawn = [item for item in items if is_drawn(item, share)]
    if len(drawn) < len(items):
        config.hook.pytest_deselected(items=set(items) - set(drawn))
        items[:] = drawn
    rank = {"test_%s.py" % name: number for number, name in enumerate(LONG)}
    items.sort(key=lambda item: rank.get(item.path.name, len(LONG)))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    setattr(item, "report_" + call.when, report)
    world = worlds.of_run.describe(item.nodeid)
    if report.failed and world:
        report.sections.append(("world", world))


def doors(node):
    return worlds.DOORS[:1 if node.get_closest_marker("port") else 2]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    worlds.of_run.doors = doors(item)


@pytest.hookimpl(hookwrapper=True)
def pytest_fixture_setup(fixturedef, request):
    run = worlds.of_run
    before = run.file, run.doors
    if fixturedef.scope == "module":
        run.file, run.doors = request.node.nodeid, doors(request.node)
    yield
    run.file, run.doors = before


@pytest.fixture
def tmp_path():
    """A folder with a short name (for sockets), removed after the test."""
    with tempfile.TemporaryDirectory(prefix="bloomery-") as folder:
        yield Path(folder)


def failed(request):
    report = getattr(request.node, "report_call", None)
    return report is None or report.failed


@pytest.fixture
def start_server(request, tmp_path):
    """start_server("--maxclients", 3): a running server. A directory of its own in
    tmp_path is removed after its end."""
    started = []

    def start(*options, **kwargs):
        started.append(servers.Server(*options, **kwargs))
        return started[-1]

    yield start
    servers.stop_all(started, failed(request))


@pytest.fixture
def group(request, tmp_path):
    """Servers that follow each other, and proxies between them. A directory of
    theirs in tmp_path is removed after their end."""
    made = replicas.Group()
    yield made
    made.end(failed(request))


@pytest.fixture
def member(group):
    """member(): a server beside a made-up node (lib.slot_copy.Members)."""
    made = slot_copy.Members(group)
    yield made
    made.close()


@pytest.fixture
def server(start_server):
    return start_server()


@pytest.fixture
def start_oracle():
    reason = servers.oracle_missing()
    started = []

    def start(*options):
        if reason:
            pytest.skip("oracle: " + reason)
        oracle = servers.Oracle(*options)
        started.append(oracle)
        return oracle

    yield start
    for oracle in started:
        oracle.stop()


@pytest.fixture
def oracle(start_oracle):
    return start_oracle()


@pytest.fixture(scope="module", params=cluster.KINDS)
def bed(request):
    """A cluster of each kind for the tests of a file: the fixture `ring`."""
    made = cluster.Bed(request.param)
    yield made
    made.end()


@pytest.fixture
def ring(request, bed):
    """Three primaries and three replicas, with a daemon beside each. LINKED = True in
    a test's file: in a network whose links can be cut."""
    why = cluster.missing(bed.kind)
    if why is None and not cluster.has_sidecar():
        why = "the server has no sidecar-of"
    if why:
        pytest.skip("cluster of %s: %s" % (bed.kind, why))
    yield bed.take(linked=getattr(request.module, "LINKED", False))
    bed.give_back(failed(request))
