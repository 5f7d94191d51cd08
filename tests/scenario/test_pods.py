# SPDX-License-Identifier: BSD-3-Clause
#
# The pods of packaging/kubernetes/sidecar.yaml with real nodes of Valkey 9: each pod is
# a network namespace with an address and a name of its own, in which the commands,
# scripts and configurations of the manifest run. Pods restart with other addresses,
# the node first and the server after it, as Kubernetes ends a native sidecar.

import itertools
import os
import re
import signal
import subprocess
import threading
import time

import pytest

from lib import cluster_net, containers, resp, servers
from lib.servers import wait_until

yaml = pytest.importorskip("yaml", reason="there is no python3-yaml")

pytestmark = [
    pytest.mark.skipif(servers.sanitized(), reason="the release build does it"),
    pytest.mark.skipif(servers.valkey_missing() is not None, reason="no Valkey 9"),
    pytest.mark.skipif(cluster_net.missing() is not None, reason="no namespaces")]

MANIFEST = servers.TOP / "packaging/kubernetes/sidecar.yaml"
PODS = 6
MOUNT = ["unshare", "--mount", "sh", "-c",
         'mount --bind "$HOSTS" /etc/hosts && exec "$@"', "sh"]


class Manifest:
    """The manifest's files in a folder, and its commands."""

    def __init__(self, folder):
        self.folder = folder
        documents = list(yaml.safe_load_all(MANIFEST.read_text()))
        self.data = next(d for d in documents if d["kind"] == "ConfigMap")["data"]
        pod = next(d for d in documents
                   if d["kind"] == "StatefulSet")["spec"]["template"]["spec"]
        self.server, = pod["initContainers"]
        self.node, = pod["containers"]
        self.job = next(d for d in documents if d["kind"] == "Job")[
            "spec"]["template"]["spec"]["containers"][0]
        (folder / "password").write_text("secret")
        (folder / "password").chmod(0o600)

    def write(self, home):
        """Writes the configurations and scripts of a pod whose volumes are in home."""
        for name, text in self.data.items():
            for old, new in (("/run/secrets/bloomery", self.folder),
                             ("/etc/bloomery", home), ("/var/lib/bloomery", home / "data"),
                             ("/data", home / "nodes"), ("sleep 30", "sleep 1")):
                text = re.sub(r"(?<![\w/])" + old, str(new), text)
            (home / name).write_text(text)


class Pod:
    def __init__(self, manifest, network, hosts, number):
        self.manifest, self.network = manifest, network
        self.name = "bloomery-%d" % number
        self.hosts = hosts
        self.place = network.add()
        self.home = manifest.folder / self.name
        for folder in ("data", "nodes"):
            (self.home / folder).mkdir(parents=True)
        manifest.write(self.home)
        self.server = self.node = None

    def run(self, command, log, **more):
        """Starts a container's command in the pod."""
        words = [str(self.home / w.rsplit("/", 1)[1]) if w.startswith("/etc/bloomery/")
                 else w for w in command]
        env = {**os.environ, "POD_IP": self.place.host, "POD_NAME": self.name,
               "REDISCLI_AUTH": "secret", "HOSTS": str(self.hosts),
               "PATH": "%s:%s:%s" % (os.path.dirname(servers.server_binary()),
                                     servers.VALKEY, os.environ["PATH"])}
        return subprocess.Popen([*self.place.inside, *MOUNT, *words], env=env,
                                start_new_session=True, stdin=subprocess.DEVNULL,
                                stdout=open(self.home / log, "ab"),
                                stderr=subprocess.STDOUT, **more)

    def probe(self, container, probe):
        """As the machine's own agent does: from outside of the pod."""
        if "httpGet" in container[probe]:
            return containers.get(container[probe], self.place.host, 9379) == 200
        child = self.run(container[probe]["exec"]["command"], "probes")
        return child.wait(60) == 0

    def start(self):
        """As Kubernetes: the sidecar, its startup probe, then the node."""
        self.server = self.run(
            ["bloomery-server", "/etc/bloomery/bloomery.conf", "--threads", "1"],
            "server.log")
        wait_until(lambda: self.probe(self.manifest.server, "startupProbe"), 30,
                   "%s has started" % self.name, pause=0.1)
        self.node = self.run(self.manifest.node["command"], "node.log")

    def stop(self):
        for child in (self.node, self.server):
            child.send_signal(signal.SIGTERM)
            child.wait(60 * servers.time_factor())
        # The node's script ends with its container.
        kill(self.node)

    def is_ready(self):
        return self.probe(self.manifest.server, "readinessProbe") and \
            self.probe(self.manifest.node, "readinessProbe")

    def ask(self, *words, port=7379):
        with resp.Conn((self.place.host, port), password="secret") as conn:
            return conn.call(*words)

    def is_ok(self):
        """The server has a lease, serves all slots of its node, and its cluster is
        whole."""
        try:
            info = dict(line.split(":", 1) for line in
                        self.ask("INFO", "cluster").decode().split("\r\n") if ":" in line)
            return b"cluster_state:ok" in self.ask("CLUSTER", "INFO") and \
                all(info["cluster_slots_" + state] == "0"
                    for state in ("held", "missing", "pulled"))
        except (OSError, resp.Closed, KeyError, AttributeError):
            return False

    def role(self):
        return self.ask("ROLE")[0].decode()

    def logs(self):
        return "".join("---- %s %s\n%s" % (
            self.name, name, (self.home / name).read_text(errors="replace")[-9000:])
            for name in ("server.log", "node.log", "job.log", "probes") if (self.home / name).exists())


def kill(child):
    if child is not None:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.wait()


class Writer(threading.Thread):
    """Adds numbered items to 40 filters until the end, follows redirects by the names
    in them, and notes each item that was acknowledged."""

    def __init__(self, cluster):
        super().__init__(daemon=True)
        self.cluster, self.acked, self.names = cluster, [], set()
        self.ends = threading.Event()

    def run(self):
        for number in itertools.count():
            if self.ends.is_set():
                return
            key = "filter-%d" % (number % 40)
            if self.cluster.call(self, "BF.ADD", key, number) in (0, 1):
                self.acked.append((key, number))
            self.ends.wait(0.002)

    def wait_more(self, count=100):
        target = len(self.acked) + count
        wait_until(lambda: len(self.acked) >= target, 60, "%d adds" % count)

    def end(self):
        self.ends.set()
        self.join()


class Cluster:
    def __init__(self, folder):
        self.network = cluster_net.Network()
        self.pods = []
        self.hosts = folder / "hosts"
        self.hosts.write_text("")
        try:
            manifest = Manifest(folder)
            for number in range(PODS):
                self.pods.append(Pod(manifest, self.network, self.hosts, number))
            self.tell_names()
            for pod in self.pods:
                pod.start()
            self.create()
        except BaseException:
            print(self.logs())
            self.close()
            raise

    def logs(self):
        return "".join(pod.logs() for pod in self.pods)

    def tell_names(self):
        """What the name service of Kubernetes does. The file stays the same one."""
        with open(self.hosts, "r+") as file:
            file.truncate()
            file.write("127.0.0.1 localhost\n" + "".join(
                "%s %s.bloomery\n" % (p.place.host, p.name) for p in self.pods))

    def create(self):
        child = self.pods[0].run(self.pods[0].manifest.job["command"], "job.log")
        assert child.wait(60 * servers.time_factor()) == 0, \
            (self.pods[0].home / "job.log").read_text()

    def wait_ok(self):
        wait_until(lambda: all(p.is_ok() for p in self.pods), 90, "all servers serve",
                   pause=0.2)

    def names(self):
        """Returns the names that each server gives for the others."""
        return [{node[0].decode() for row in pod.ask("CLUSTER", "SLOTS")
                 for node in row[2:] if node[0]} for pod in self.pods]

    def call(self, writer, *words):
        """Returns a reply, or None: try again."""
        pod = self.pods[hash(words[1]) % PODS]
        try:
            for _ in range(5):
                reply = pod.ask(*words)
                moved = re.match(r"(?:MOVED|ASK) \d+ (\S+):7379$", str(reply))
                if not moved:
                    return reply
                writer.names.add(moved[1])
                pod = next((p for p in self.pods if p.name + ".bloomery" == moved[1]),
                           None)
                if pod is None or str(reply).startswith("ASK"):
                    return None
        except (OSError, resp.Closed):
            pass
        return None

    def close(self):
        for pod in self.pods:
            kill(pod.node)
            kill(pod.server)
        self.network.close()


@pytest.fixture
def cluster(tmp_path):
    cluster = Cluster(tmp_path)
    yield cluster
    print(cluster.logs())
    cluster.close()


def missing(cluster, writer):
    """Returns the acknowledged items that are not there."""
    lost = []
    for key, number in writer.acked:
        reply = wait_until(lambda: (r := cluster.call(writer, "BF.EXISTS", key, number))
                           in (0, 1) and [r], 30, "an answer")[0]
        if reply == 0:
            lost.append((key, number))
    return lost


def move(cluster, pods):
    """Restarts pods with other addresses."""
    threads = [threading.Thread(target=pod.stop) for pod in pods]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for pod in pods:
        cluster.network.move(pod.place)
    cluster.tell_names()
    for pod in pods:
        pod.start()


def test_pods_keep_their_names_and_data_when_addresses_change(cluster):
    cluster.wait_ok()
    wait_until(lambda: all(pod.is_ready() for pod in cluster.pods), 60, "all are ready")
    cluster.create()  # again: the cluster is there
    assert "the cluster is there" in \
        (cluster.pods[0].home / "job.log").read_text().splitlines()[-1]
    assert sorted(p.role() for p in cluster.pods) == ["master"] * 3 + ["slave"] * 3
    # A node that was met a moment ago has told only its address; its name is "?".
    names = {pod.name + ".bloomery" for pod in cluster.pods}
    wait_until(lambda: cluster.names() == [names] * PODS, 60, "all know all names")
    writer = Writer(cluster)
    writer.start()
    try:
        writer.wait_more()
        # A primary's pod, while clients write. The node hands over before it ends, if
        # its replica follows.
        pod = next(p for p in cluster.pods if p.role() == "master")
        wait_until(lambda: sum(b"master_link_status:up" in
                               p.ask("INFO", "replication", port=6379)
                               for p in cluster.pods) == 3, 60, "the replicas follow")
        before = pod.place.host
        began = time.monotonic()
        move(cluster, [pod])
        assert pod.place.host != before
        writer.wait_more()
        cluster.wait_ok()
        print("a pod moved in %.1f s" % (time.monotonic() - began))
        wait_until(lambda: pod.role() == "slave" and pod.ask("ROLE")[3] == b"connected",
                   60, "its server follows the new primary")
        writer.wait_more()
        # All pods at once: no node knows where any other is.
        writer.end()
        move(cluster, cluster.pods)
        cluster.wait_ok()
        assert not missing(cluster, writer)
        assert len(writer.acked) >= 300
        # Clients were sent to names, whose addresses have changed twice.
        assert writer.names - {"?"} and writer.names <= names | {"?"}
        wait_until(lambda: cluster.names() == [names] * PODS, 60, "all know all names")
    finally:
        writer.end()
