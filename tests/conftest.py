# SPDX-License-Identifier: BSD-3-Clause
#
# Fixtures of all behaviour tests. When a test ends, a fixture stops its servers
# and checks them (exit status, sanitizer reports). After a failure it also shows
# their logs.

import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from lib import servers  # noqa: E402


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: left out by tests/run --quick")
    if not Path(servers.server_binary()).exists():
        raise pytest.UsageError("no server: %s (make all, or BLOOMERY_SERVER)"
                                % servers.server_binary())


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    setattr(item, "report_" + call.when, outcome.get_result())


@pytest.fixture
def tmp_path():
    """A folder with a short name (for sockets), removed after the test."""
    with tempfile.TemporaryDirectory(prefix="bloomery-") as folder:
        yield Path(folder)


@pytest.fixture
def start_server(request):
    """start_server("--maxclients", 3): a running server."""
    started = []

    def start(*options, **kwargs):
        server = servers.Server(*options, **kwargs)
        started.append(server)
        return server

    yield start
    report = getattr(request.node, "report_call", None)
    failed = report is None or report.failed
    problems = []
    for server in started:
        if failed:
            print("---- log of the server on port %d\n%s" % (
                server.port, server.log().decode("utf-8", "replace")[-4000:]))
        try:
            server.stop()
        except AssertionError as problem:
            problems.append(str(problem))
        server.remove()
    assert not problems, "\n".join(problems)


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
