"""Bowsprit in tests: a Kubernetes API server that starts in a fraction of a second.

    with bowsprit.Server(simulate={"nodes": 3}, install=["crds/"]) as server:
        config.load_kube_config(server.kubeconfig)

A pytest plugin has the fixtures bowsprit_server, bowsprit_namespace and bowsprit_own_server. The package needs the
standard library only, and any client library works with server.kubeconfig.
"""

from .binary import find_binary
from .server import BowspritError, Namespace, Server

__all__ = ["BowspritError", "Namespace", "Server", "find_binary"]
__version__ = "0.1.0.dev0"
