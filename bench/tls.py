#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
#
# Measures the CPU time of the server per command: plain, over TLS, and plain behind
# stunnel, whose time counts, too. redis-benchmark sends BF.ADD from 20 connections.
# Without redis-benchmark or stunnel4, that part is left out by name.
"""Measure the cost of TLS."""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from lib import servers, tls  # noqa: E402

CONNECTIONS = 20
PIPELINES = (1, 16, 100)


def cpu_ns(pid):
    """Return the CPU time of a process, with that of threads that have ended:
    its CPU clock, as clock_getcpuclockid(3) makes the id."""
    return time.clock_gettime_ns((~pid << 3) | 2)


def drive(port, pipeline, commands, secure):
    """Send the commands; secure are the options for TLS."""
    subprocess.run(
        ["redis-benchmark", "-p", str(port), "-c", str(CONNECTIONS), "-P",
         str(pipeline), "-n", str(commands), "-r", "1000000", "-q", *secure,
         "BF.ADD", "k", "__rand_int__"], check=True, capture_output=True)


def per_command(pids, port, pipeline, commands, secure=()):
    """Return nanoseconds of the processes per command."""
    before = sum(map(cpu_ns, pids))
    drive(port, pipeline, commands, secure)
    return (sum(map(cpu_ns, pids)) - before) / commands


def start_stunnel(folder, files, port, to):
    """Start it in the foreground; its threads serve all connections."""
    path = folder / "stunnel.conf"
    path.write_text(
        "foreground = yes\npid =\nsyslog = no\ndebug = 3\n[bloomery]\n"
        "accept = 127.0.0.1:%d\nconnect = 127.0.0.1:%d\ncert = %s\nkey = %s\n"
        % (port, to, *files.server))
    child = subprocess.Popen(["stunnel4", str(path)],
                             stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    time.sleep(1)
    assert child.poll() is None, "stunnel4 ended"
    return child


def measure(server, files, folder, port, rounds, commands):
    """Print a table, with the medians of the rounds."""
    secure = ["--tls", "--cacert", str(files.ca)]
    stunnel_port = servers.free_port()
    stunnel = None
    if shutil.which("stunnel4"):
        stunnel = start_stunnel(folder, files, stunnel_port, server.port)
    else:
        print("stunnel4 is not installed: its column is left out")
    kinds = [("plain", [server.pid], server.port, ()),
             ("TLS", [server.pid], port, secure)]
    if stunnel:
        kinds.append(("stunnel", [server.pid, stunnel.pid], stunnel_port,
                      secure))
    try:
        print("ns of CPU per BF.ADD, %d connections" % CONNECTIONS)
        print("%9s" % "pipeline" + "".join("%10s" % k[0] for k in kinds))
        for pipeline in PIPELINES:
            count = commands * min(pipeline, 20)
            took = {k[0]: [] for k in kinds}
            for _ in range(rounds):
                for name, pids, at, options in kinds:
                    took[name].append(per_command(pids, at, pipeline, count,
                                                  options))
            print("%9d" % pipeline + "".join(
                "%10.0f" % statistics.median(took[k[0]]) for k in kinds))
    finally:
        if stunnel:
            stunnel.terminate()
            stunnel.wait()


def main():
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--commands", type=int, default=50000)
    args = parser.parse_args()
    if not shutil.which("redis-benchmark"):
        print("redis-benchmark is not installed: nothing is measured")
        return
    os.environ["BLOOMERY_SERVER"] = str(
        Path(args.build).resolve() / "bloomery-server")
    with tempfile.TemporaryDirectory() as folder:
        files = tls.Files(Path(folder))
        port = servers.free_port()
        server = servers.Server(*files.options(port), "--tls-auth-clients",
                                "no", "--appendonly", "no", threads=2)
        try:
            measure(server, files, Path(folder), port, args.rounds,
                    args.commands)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
