"""Server, against a real one. The variable BOWSPRIT names the program."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import bowsprit
from bowsprit import server as module

kubernetes = pytest.importorskip("kubernetes")

DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ships.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: ships, singular: ship, kind: Ship}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {masts: {type: integer}}}}}
"""

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx}]}
"""


def client(kubeconfig):
    return kubernetes.config.new_client_from_config(kubeconfig)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    directory = tmp_path_factory.mktemp("crds")
    (directory / "ships.yaml").write_text(DEFINITION)
    with bowsprit.Server(simulate={"nodes": 2}, install=[directory]) as server:
        yield server


def test_custom_objects(server):
    with server.namespace("sea") as sea:
        api = kubernetes.client.CustomObjectsApi(client(sea.kubeconfig))
        ship = {"apiVersion": "example.com/v1", "kind": "Ship", "metadata": {"name": "a"}, "spec": {"masts": 3}}
        api.create_namespaced_custom_object("example.com", "v1", sea.name, "ships", ship)
        ship["spec"]["masts"] = "three"
        with pytest.raises(kubernetes.client.ApiException) as refused:
            api.create_namespaced_custom_object("example.com", "v1", sea.name, "ships", ship)
        assert refused.value.status == 422
        assert sea.name.startswith("sea-")
        assert "a" in sea.kubectl("get", "ships")


def test_workloads(server):
    with server.namespace() as one:
        one.kubectl("apply", "--filename=-", input=DEPLOYMENT)
        path = f"/apis/apps/v1/namespaces/{one.name}/deployments/web"
        found = server.wait(path, lambda o: o.get("status", {}).get("readyReplicas") == 2)
        assert found["spec"]["replicas"] == 2
        pods = kubernetes.client.CoreV1Api(client(one.kubeconfig)).list_namespaced_pod(one.name).items
        assert {pod.status.phase for pod in pods} == {"Running"}


def test_namespaces_are_apart(server):
    with server.namespace() as one, server.namespace() as two:
        one.kubectl("create", "configmap", "web")
        assert "web" not in two.kubectl("get", "configmaps")
        name = one.name
    server.wait("/api/v1/namespaces/default", lambda _: True)
    with pytest.raises(bowsprit.BowspritError):
        server.wait(f"/api/v1/namespaces/{name}", lambda o: o["status"]["phase"] == "Active", timeout=0)


def test_users(server):
    with server.namespace() as one:
        alice = one.user("alice", role="view")
        api = kubernetes.client.CoreV1Api(client(alice))
        assert api.list_namespaced_config_map(one.name) is not None
        for forbidden in (lambda: api.list_namespaced_secret(one.name), lambda: api.list_namespaced_pod("default")):
            with pytest.raises(kubernetes.client.ApiException) as refused:
                forbidden()
            assert refused.value.status == 403
        admin = server.user("bob", groups=["system:masters"])
        assert kubernetes.client.CoreV1Api(client(admin)).list_node().items
        assert os.stat(alice).st_mode & 0o077 == 0


def test_install_in_a_namespace(server, tmp_path):
    file = tmp_path / "web.yaml"
    file.write_text(DEPLOYMENT)
    with server.namespace() as one:
        one.install(file)
        assert "web" in one.kubectl("get", "deployments")


def test_errors(server, monkeypatch, tmp_path):
    with pytest.raises(bowsprit.BowspritError, match="404") as missing:
        server.request("GET", "/api/v1/namespaces/absent")
    assert missing.value.status == 404
    with pytest.raises(bowsprit.BowspritError, match="not have the condition in time"):
        server.wait("/api/v1/namespaces/default", lambda _: False, timeout=0)
    with pytest.raises(bowsprit.BowspritError, match="unknown command"):
        server.kubectl("nothing")
    with pytest.raises(bowsprit.BowspritError, match="started already"):
        server.start()
    with pytest.raises(bowsprit.BowspritError, match="(?s)serve .* ended:.*--secure-port"):
        bowsprit.Server(args=["--secure-port=99999"]).start()
    with pytest.raises(bowsprit.BowspritError, match="does not exist"):
        bowsprit.Server(install=[tmp_path / "absent.yaml"]).start()
    assert list(module._running) == [server]
    monkeypatch.delenv("BOWSPRIT", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="is not installed"):
        bowsprit.Server().start()
    with pytest.raises(FileNotFoundError, match="is no program"):
        bowsprit.find_binary("/absent")


def test_stop():
    server = bowsprit.Server().start()
    process, directory = server._process, server._directory
    assert server.running and server.log()
    server.stop()
    server.stop()
    assert process.returncode == 0 and not directory.exists() and not server.running and server.log() == ""


def test_asyncio():
    async def use():
        async with bowsprit.Server() as server:
            return server, await asyncio.get_running_loop().run_in_executor(None, server.kubectl, "get", "namespaces")

    server, output = asyncio.run(use())
    assert "kube-system" in output and not server.running


def gone(pid):
    """Report whether a process has ended. An ended process of another parent may be a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
@pytest.mark.parametrize("how", ["killed", "killed with a forked child", "interrupted"])
def test_no_process_outlives_the_runner(how):
    script = """
        import os, sys, time, bowsprit
        server = bowsprit.Server().start()
        child = os.fork() if "forked" in sys.argv[1] else None
        if child == 0:
            server.stop()  # of the parent: no effect
            time.sleep(600)
        print(server._process.pid, child or 0, flush=True)
        time.sleep(600)
    """
    runner = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), how],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(bowsprit.__file__).parents[1])},
    )
    server, child = map(int, runner.stdout.readline().split())
    try:
        assert not gone(server)
        runner.send_signal(signal.SIGINT if how == "interrupted" else signal.SIGKILL)
        runner.wait()
        end = time.monotonic() + 60
        while not gone(server):
            assert time.monotonic() < end, "the server outlives its runner"
            time.sleep(0.02)
    finally:
        if child:
            os.kill(child, signal.SIGKILL)
