"""The pytest plugin, in a pytest of its own."""

import os
from pathlib import Path

import pytest

import bowsprit

PACKAGE = Path(bowsprit.__file__).parents[1]


@pytest.fixture
def project(pytester, monkeypatch):
    """A project that uses the plugin."""
    monkeypatch.setenv("PYTHONPATH", str(PACKAGE))
    installed = any(e.name == "bowsprit" for e in _plugins())
    pytester.makeini("[pytest]\nbowsprit_simulate = nodes=1\nbowsprit_install = map.yaml\n")
    pytester.path.joinpath("map.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: installed, namespace: default}\n"
    )
    if not installed:
        pytester.makeconftest('pytest_plugins = ["bowsprit.pytest_plugin"]\n')
    return pytester


def _plugins():
    from importlib.metadata import entry_points

    found = entry_points()
    return found.select(group="pytest11") if hasattr(found, "select") else found.get("pytest11", [])


SHARED = """
    import pytest

    @pytest.mark.parametrize("n", range(6))
    def test_apart(bowsprit_server, bowsprit_namespace, n):
        print(f"server {bowsprit_server.url} namespace {bowsprit_namespace.name}.")
        bowsprit_namespace.kubectl("create", "configmap", "web")
        assert "installed" in bowsprit_server.kubectl("get", "configmaps")
        assert bowsprit_server.kubectl("get", "nodes").count("node-") == 1
"""


def _words(result, before):
    return [line.split(before + " ")[1].split()[0] for line in result.outlines if before + " " in line]


def test_one_server_for_all(project):
    project.makepyfile(SHARED)
    result = project.runpytest_subprocess("-s")
    result.assert_outcomes(passed=6)
    assert len(set(_words(result, "server"))) == 1 and len(set(_words(result, "namespace"))) == 6


def test_xdist(project):
    pytest.importorskip("xdist")
    project.makepyfile(SHARED)
    result = project.runpytest_subprocess("-n2", "--dist=each", "-rP")
    result.assert_outcomes(passed=12)
    assert len(set(_words(result, "server"))) == 2 and len(set(_words(result, "namespace"))) == 12


def test_own_server(project):
    project.makepyfile(
        """
        def test_one(bowsprit_server, bowsprit_own_server):
            assert bowsprit_server.url != bowsprit_own_server.url
            bowsprit_own_server.kubectl("create", "namespace", "mine")
            assert "mine" not in bowsprit_server.kubectl("get", "namespaces")
        """
    )
    project.runpytest_subprocess().assert_outcomes(passed=1)


def test_settings_in_python(project):
    project.makepyfile(
        """
        import pytest

        @pytest.fixture(scope="session")
        def bowsprit_settings(bowsprit_settings):
            return {**bowsprit_settings, "simulate": {"nodes": 3}}

        def test_nodes(bowsprit_server):
            assert bowsprit_server.kubectl("get", "nodes").count("node-") == 3
        """
    )
    project.runpytest_subprocess().assert_outcomes(passed=1)


def test_failure_shows_the_log(project):
    project.makepyfile(
        """
        def test_good(bowsprit_server):
            pass

        def test_bad(bowsprit_server):
            assert bowsprit_server.kubectl("create", "namespace", "x") == ""
        """
    )
    project.makeini("[pytest]\nbowsprit_args = -v=3\n")
    result = project.runpytest_subprocess()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*log of bowsprit at https://127.0.0.1:*", "*POST*/api/v1/namespaces*"])
    assert "msg=starting" not in result.stdout.str()  # of an earlier test


def test_binary(project, monkeypatch):
    monkeypatch.setenv("BOWSPRIT", "/absent")
    project.makepyfile("def test_it(bowsprit_server): pass")
    result = project.runpytest_subprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*the variable BOWSPRIT is '/absent', and that is no program*"])
    program = monkeypatch.delenv("BOWSPRIT") or os.environ.get("BOWSPRIT_UNDER_TEST", "")
    result = project.runpytest_subprocess(f"--bowsprit-binary={program or 'absent'}")
    result.assert_outcomes(**({"passed": 1} if program else {"errors": 1}))
