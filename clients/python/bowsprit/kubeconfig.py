"""Kubeconfigs, which the package writes as JSON: each reader of YAML accepts it."""

import base64
import json
import os
import re

_FIELDS = {
    "server": r"^\s+server: (\S+)$",
    "authority": r"^\s+certificate-authority-data: (\S+)$",
    "certificate": r"^\s+client-certificate-data: (\S+)$",
    "key": r"^\s+client-key-data: (\S+)$",
}


class Credentials:
    """The server and the client certificate of a kubeconfig that Bowsprit has written."""

    def __init__(self, text):
        for field, pattern in _FIELDS.items():
            found = re.search(pattern, text, re.MULTILINE)
            if not found:
                raise ValueError(f"the kubeconfig of bowsprit has no {field}")
            setattr(self, field, found[1].strip("\"'"))

    def write(self, path, namespace="default"):
        """Write a kubeconfig with a namespace, readable by this user only. Return its path."""
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "bowsprit",
            "clusters": [
                {"name": "bowsprit", "cluster": {"server": self.server, "certificate-authority-data": self.authority}}
            ],
            "users": [
                {"name": "bowsprit", "user": {"client-certificate-data": self.certificate, "client-key-data": self.key}}
            ],
            "contexts": [
                {"name": "bowsprit", "context": {"cluster": "bowsprit", "user": "bowsprit", "namespace": namespace}}
            ],
        }
        write_private(path, json.dumps(config, indent=1).encode())
        return str(path)

    def write_pem(self, path):
        """Write the certificate and the key as PEM, for the module ssl."""
        write_private(path, base64.b64decode(self.certificate) + b"\n" + base64.b64decode(self.key))
        return str(path)

    def authority_pem(self):
        return base64.b64decode(self.authority).decode()


def write_private(path, data):
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
