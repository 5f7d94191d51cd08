# SPDX-License-Identifier: BSD-3-Clause
#
# The manifests for Kubernetes: that they are whole, and that the commands and scripts
# in them work. No cluster of Kubernetes runs here; test_pods.py imitates one.

import os
import re
import shutil
import subprocess
import urllib.request
from pathlib import Path

import pytest

from lib import containers, resp, servers
from lib.containers import Running

yaml = pytest.importorskip("yaml", reason="there is no python3-yaml")

pytestmark = pytest.mark.skipif(servers.sanitized(), reason="the release build does it")

TOP = servers.TOP
FOLDER = TOP / "packaging/kubernetes"

MANIFESTS = sorted(path.stem for path in FOLDER.glob("*.yaml"))
API = {"ConfigMap": "v1", "Service": "v1", "StatefulSet": "apps/v1",
       "PodDisruptionBudget": "policy/v1", "Job": "batch/v1"}
PROBES = ["startupProbe", "livenessProbe", "readinessProbe"]


def documents(name):
    return list(yaml.safe_load_all((FOLDER / (name + ".yaml")).read_text()))


def of_kind(name, kind):
    return [d for d in documents(name) if d["kind"] == kind]


def pods(name, *kinds):
    """Every container, as (object, pod, container)."""
    return [(o, o["spec"]["template"]["spec"], c)
            for kind in kinds or ("StatefulSet", "Job") for o in of_kind(name, kind)
            for part in ("initContainers", "containers")
            for c in o["spec"]["template"]["spec"].get(part, [])]


def test_there_are_three_ways_to_run_it():
    assert MANIFESTS == ["sentinel", "sidecar", "standalone"]


@pytest.mark.parametrize("name", MANIFESTS)
def test_kubernetes_knows_every_field(name):
    """kubernetes-validate of PyPI has the schemas; it is too large for every run."""
    validate = pytest.importorskip("kubernetes_validate")
    for document in documents(name):
        for version in ("1.29", validate.latest_version()):
            validate.validate(document, version, strict=True)


@pytest.mark.parametrize("name", MANIFESTS)
def test_the_objects_refer_to_each_other(name):
    seen = {(d["kind"], d["metadata"]["name"]) for d in documents(name)}
    assert len(seen) == len(documents(name))
    assert all(d["apiVersion"] == API[d["kind"]] for d in documents(name))
    for stateful in of_kind(name, "StatefulSet"):
        spec = stateful["spec"]
        pod = spec["template"]["spec"]
        labels = spec["template"]["metadata"]["labels"]
        assert spec["selector"]["matchLabels"] == labels
        assert ("Service", spec["serviceName"]) in seen
        service = next(d for d in of_kind(name, "Service")
                       if d["metadata"]["name"] == spec["serviceName"])
        assert service["spec"]["selector"] == labels
        containers = [c for s, _, c in pods(name, "StatefulSet")
                      if s["metadata"] == stateful["metadata"]]
        ports = {p["name"]: p["containerPort"] for c in containers for p in c["ports"]}
        for port in service["spec"]["ports"]:
            assert ports[port["targetPort"]] == port["port"]
        volumes = {v["name"] for v in pod["volumes"]}
        claims = {c["metadata"]["name"] for c in spec["volumeClaimTemplates"]}
        mounts = {m["name"] for c in containers for m in c["volumeMounts"]}
        assert mounts == volumes | claims and not volumes & claims
        budgets = [d["spec"] for d in of_kind(name, "PodDisruptionBudget")
                   if d["metadata"]["name"] == stateful["metadata"]["name"]]
        if spec["replicas"] > 1:  # a drain takes one after the other
            assert budgets == [{"maxUnavailable": 1, "selector": {"matchLabels": labels}}]
        else:                     # a budget would block the drain
            assert budgets == []
    for _, pod, container in pods(name):
        volumes = {v["name"]: v for v in pod["volumes"]}
        assert ("ConfigMap", volumes["configuration"]["configMap"]["name"]) in seen
        assert volumes.get("password", {"secret": {"secretName": "bloomery"}})[
            "secret"]["secretName"] == "bloomery"
        assert set(container["resources"]) == {"requests", "limits"}
        assert "memory" in container["resources"]["limits"]


@pytest.mark.parametrize("name", MANIFESTS)
def test_no_container_may_do_more_than_it_needs(name):
    for _, pod, container in pods(name):
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] > 0
        assert pod["securityContext"]["fsGroup"] == pod["securityContext"]["runAsGroup"]
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]}}
        writable = [m["name"] for m in container["volumeMounts"]
                    if not m.get("readOnly")]
        assert writable in (["data"], ["nodes"]) or container["name"] == "create"


def bloomery(name):
    return next((s, p, c) for s, p, c in pods(name) if c["name"] == "bloomery")


def conf_of(name, folder):
    """The configuration, with the password in a file of this machine."""
    text = of_kind(name, "ConfigMap")[0]["data"]["bloomery.conf"]
    password = folder / "password"
    password.write_text("secret")
    password.chmod(0o600)
    mounts = {m["mountPath"]: m["name"] for m in bloomery(name)[2]["volumeMounts"]}
    text = text.replace(":6379", ":%d" % servers.free_port())  # no node is there
    assert "\nmetrics-bind = *\n" in text
    text = text.replace("metrics-port = 9379", "metrics-port = %d" % servers.free_port())
    assert mounts["/run/secrets/bloomery"] == "password"
    assert mounts["/etc/bloomery"] == "configuration"
    assert mounts["/var/lib/bloomery"] == "data"
    return text.replace("/run/secrets/bloomery/password", str(password))


@pytest.mark.parametrize("name", MANIFESTS)
def test_the_probes_work_with_the_configuration(name, tmp_path):
    container = bloomery(name)[2]
    conf = conf_of(name, tmp_path)
    options = ["--threads", "2", "--min-replicas-to-write", "0"]
    command = ["bloomery-server", "/etc/bloomery/bloomery.conf"]
    if name == "sentinel":
        script = container["args"][0]
        assert container["command"] == ["/bin/sh", "-c"]
        words = subprocess.run(
            ["/bin/sh", "-c", script.replace("exec bloomery-server", "printf '%s\\n'")],
            env={"HOSTNAME": "bloomery-0"}, text=True, capture_output=True,
            check=True).stdout.split("\n")[:-1]
        assert words == ["/etc/bloomery/bloomery.conf", "--replicaof", "",
                         "--replica-announce-ip", "bloomery-0.bloomery"]
        command = ["bloomery-server"] + words
        other = subprocess.run(
            ["/bin/sh", "-c", script.replace("exec bloomery-server", "printf '%s\\n'")],
            env={"HOSTNAME": "bloomery-2"}, text=True, capture_output=True, check=True)
        assert "\nbloomery-0.bloomery 7379\n" in other.stdout
    probes = [container[p] for p in PROBES]
    metrics = int(re.search("^metrics-port = (.*)", conf, re.M).group(1))
    with Running(command, conf, tmp_path, *options) as running:
        for probe in probes:
            good = name != "sidecar" or probe["httpGet"]["path"] != "/readyz"
            servers.wait_until(
                lambda: containers.get(probe, "127.0.0.1", metrics) == (200 if good else 503),
                20, "%s is %s" % (probe, "good" if good else "bad: no node"), pause=0.1)
        with resp.Conn(("127.0.0.1", running.port), password="secret") as conn:
            assert conn.call("CONFIG", "GET", "dir")[1].decode() == \
                str(tmp_path / "data")
            port = int(conn.call("CONFIG", "GET", "metrics-port")[1])
        with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % port) as page:
            assert b"\nbloomery_connected_clients " in page.read()
    assert {"name": "metrics", "containerPort": 9379} in container["ports"]
    assert [p["httpGet"]["path"] for p in probes] == ["/livez", "/livez", "/readyz"]
    assert {p["httpGet"]["port"] for p in probes} == {"metrics"}
    for service in of_kind(name, "Service"):
        if name != "standalone":  # a Sentinel must reach a replica without data
            assert service["spec"]["publishNotReadyAddresses"] is True


def test_the_sidecar_starts_before_its_node():
    """A native sidecar, whose start waits for nothing of the node."""
    stateful = of_kind("sidecar", "StatefulSet")[0]
    pod = stateful["spec"]["template"]["spec"]
    sidecar, = pod["initContainers"]
    assert sidecar["name"] == "bloomery" and sidecar["restartPolicy"] == "Always"
    conf = of_kind("sidecar", "ConfigMap")[0]["data"]["bloomery.conf"]
    ports = {c["name"]: c["ports"][0]["containerPort"]
             for c in [sidecar, *pod["containers"]]}
    assert "sidecar-of = 127.0.0.1:%d\n" % ports["valkey"] in conf
    assert "sidecar-port-offset = %d\n" % (ports["bloomery"] - ports["valkey"]) in conf
    numbers = " ".join(map(str, range(stateful["spec"]["replicas"])))
    for script in ("start", "create"):
        assert "for number in %s; do" % numbers in \
            of_kind("sidecar", "ConfigMap")[0]["data"][script]


@pytest.mark.parametrize("script", ["start", "create"])
def test_the_scripts_of_the_sidecar_are_clean(script, tmp_path):
    if not shutil.which("shellcheck"):
        pytest.skip("shellcheck is not installed")
    text = of_kind("sidecar", "ConfigMap")[0]["data"][script]
    (tmp_path / script).write_text("#!/bin/sh\n" + text)
    got = subprocess.run(["shellcheck", tmp_path / script], capture_output=True, text=True)
    assert got.returncode == 0, got.stdout


def test_a_sentinel_accepts_its_configuration(tmp_path):
    """That of Debian's Redis, which has the options of Valkey's."""
    if servers.oracle_missing():
        pytest.skip(servers.oracle_missing())
    container = next(c for _, _, c in pods("sentinel") if c["name"] == "sentinel")
    port = servers.free_port()
    text = of_kind("sentinel", "ConfigMap")[0]["data"]["sentinel.conf"]
    script = container["args"][0]
    (tmp_path / "password").write_text("secret")
    (tmp_path / "data").mkdir()
    text = text.replace("26379", str(port)).replace("bloomery-0.bloomery", "127.0.0.1")
    (tmp_path / "sentinel.conf").write_text(text.replace("/data", str(tmp_path / "data")))
    for old, new in (("/etc/bloomery", tmp_path), ("/run/secrets/bloomery", tmp_path),
                     ("/data", tmp_path / "data"), ("$HOSTNAME.bloomery-sentinel",
                                                    "127.0.0.1"),
                     ("exec valkey-sentinel", "exec %s" % (
                         Path(servers.REDIS) / "redis-server"))):
        assert old in script
        script = script.replace(old, str(new))
    env = dict(os.environ)
    libs = [str(p) for p in (TOP / "build/redis/usr/lib").glob("*-linux-gnu")]
    if libs:
        env["LD_LIBRARY_PATH"] = ":".join(libs)
    child = subprocess.Popen(["/bin/sh", "-c", script.rstrip() + " --sentinel"], env=env,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        def monitors():
            assert child.poll() is None, child.stdout.read().decode()
            try:
                with resp.Conn(("127.0.0.1", port)) as conn:
                    return conn.call("SENTINEL", "MASTERS")
            except OSError:
                return None
        masters = servers.wait_until(monitors, 20, "the Sentinel answers", pause=0.05)
        facts = dict(zip(masters[0][::2], masters[0][1::2]))
        assert facts[b"name"] == b"bloom" and facts[b"quorum"] == b"2"
        assert int(facts[b"down-after-milliseconds"]) > 1000
        assert "sentinel auth-pass bloom secret" in \
            (tmp_path / "data/sentinel.conf").read_text()
    finally:
        child.kill()
        child.wait()
