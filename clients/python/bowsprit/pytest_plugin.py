"""Fixtures for pytest. With pytest-xdist each worker has a server of its own."""

import shlex

import pytest

from . import server as _server
from .server import Server


def pytest_addoption(parser):
    group = parser.getgroup("bowsprit", "Bowsprit, a Kubernetes API server for tests")
    group.addoption("--bowsprit-binary", help="the program bowsprit (default: BOWSPRIT, the wheel's own, or PATH)")
    parser.addini("bowsprit_simulate", "simulate nodes and workloads, with settings such as nodes=3", default="")
    parser.addini("bowsprit_install", "files and directories to install in each server", type="paths", default=[])
    parser.addini("bowsprit_args", "further arguments of bowsprit serve", default="")


@pytest.fixture(scope="session")
def bowsprit_settings(pytestconfig):
    """The arguments of bowsprit.Server. Override this fixture to set them in Python."""
    return {
        "binary": pytestconfig.getoption("bowsprit_binary"),
        "simulate": pytestconfig.getini("bowsprit_simulate"),
        "install": pytestconfig.getini("bowsprit_install"),
        "args": shlex.split(pytestconfig.getini("bowsprit_args")),
    }


@pytest.fixture(scope="session")
def bowsprit_server(bowsprit_settings):
    """A server for all tests of this process."""
    with Server(**bowsprit_settings) as server:
        yield server


@pytest.fixture
def bowsprit_namespace(bowsprit_server):
    """A new namespace of bowsprit_server, which is deleted after the test."""
    with bowsprit_server.namespace() as namespace:
        yield namespace


@pytest.fixture
def bowsprit_own_server(bowsprit_settings):
    """A server for one test."""
    with Server(**bowsprit_settings) as server:
        yield server


# The lines of the log that a failed test shows.
_LINES = 100


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    item.stash[_positions] = {id(server): server.log_size() for server in _server._running}


_positions = pytest.StashKey()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if not report.failed:
        return
    positions = item.stash.get(_positions, {})
    for server in list(_server._running):
        lines = server.log(positions.get(id(server), 0)).splitlines()[-_LINES:]
        if lines:
            report.sections.append((f"log of bowsprit at {server.url}", "\n".join(lines)))
