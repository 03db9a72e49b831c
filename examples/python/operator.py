"""An operator in Python, with the standard library alone.

It writes a ConfigMap for each Greeting, with server-side apply, and the text to the Greeting's status. It needs only
what a pod has: the files of its ServiceAccount, two variables, and a volume. So it runs in a cluster, and beside a
server by "bowsprit run --as-pod deployment/greeter --namespace greeter -- python3 operator.py".
"""

import argparse
import http.server
import json
import os
import ssl
import sys
import threading
import time
import urllib.error
import urllib.request

# ROOT is where the pod's files are: "" in a pod, and on Linux with bowsprit run.
ROOT = os.environ.get("BOWSPRIT_POD_ROOT", "")
ACCOUNT = ROOT + "/var/run/secrets/kubernetes.io/serviceaccount"
SETTINGS = ROOT + "/etc/greeter"


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


class Client:
    """Client sends requests to the API server as the pod's ServiceAccount."""

    def __init__(self):
        host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
        if ":" in host:
            host = f"[{host}]"
        self.base = f"https://{host}:{port}"
        self.tls = ssl.create_default_context(cafile=ACCOUNT + "/ca.crt")
        self.namespace = read(ACCOUNT + "/namespace")

    def open(self, method, path, body=None, kind="application/json"):
        request = urllib.request.Request(self.base + path, method=method)
        # The token is renewed, so each request reads it.
        request.add_header("Authorization", "Bearer " + read(ACCOUNT + "/token").strip())
        request.add_header("Content-Type", kind)
        data = None if body is None else json.dumps(body).encode()
        return urllib.request.urlopen(request, data, context=self.tls, timeout=300)

    def send(self, method, path, body=None, kind="application/json"):
        with self.open(method, path, body, kind) as response:
            return json.load(response)

    def apply(self, path, body):
        # JSON is YAML.
        return self.send("PATCH", path + "?fieldManager=greeter&force=true", body, "application/apply-patch+yaml")


def reconcile(client, greeting):
    """Reconcile brings the ConfigMap and the status of a Greeting up to date."""
    meta = greeting["metadata"]
    text = f"{read(SETTINGS + '/word')}, {greeting['spec']['name']}!"
    if greeting.get("status", {}).get("message") == text:
        return
    owner = {
        "apiVersion": greeting["apiVersion"], "kind": greeting["kind"], "name": meta["name"], "uid": meta["uid"],
        "controller": True,
    }
    client.apply(f"/api/v1/namespaces/{client.namespace}/configmaps/{meta['name']}", {
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"text": text},
        "metadata": {"name": meta["name"], "ownerReferences": [owner]},
    })
    client.apply(f"/apis/example.com/v1/namespaces/{client.namespace}/greetings/{meta['name']}/status", {
        "apiVersion": greeting["apiVersion"], "kind": greeting["kind"], "metadata": {"name": meta["name"]},
        "status": {"message": text},
    })
    print("greeted", greeting["spec"]["name"], flush=True)


def follow(client, ready):
    """Follow lists and watches the Greetings of the pod's namespace until the watch ends."""
    path = f"/apis/example.com/v1/namespaces/{client.namespace}/greetings"
    found = client.send("GET", path)
    for greeting in found["items"]:
        reconcile(client, {"apiVersion": "example.com/v1", "kind": "Greeting", **greeting})
    version = found["metadata"]["resourceVersion"]
    with client.open("GET", f"{path}?watch=true&resourceVersion={version}") as events:
        ready.set()
        for line in events:
            event = json.loads(line)
            if event["type"] in ("ADDED", "MODIFIED"):
                reconcile(client, event["object"])


def serve(host, port, ready):
    """Serve answers the readiness probe."""

    class Health(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200 if ready.is_set() else 503)
            self.end_headers()
            self.wfile.write(b"ok\n" if ready.is_set() else b"starting\n")

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer((host, port), Health)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--host", default="", help="the address of the probe; all of the machine by default")
    arguments.add_argument("--port", type=int, default=8080)
    given, ready = arguments.parse_args(), threading.Event()
    serve(given.host, given.port, ready)
    client = Client()
    while True:
        try:
            follow(client, ready)
        except (OSError, KeyError, ValueError) as e:  # the server restarts, or the watch is too old
            print("retry:", e, file=sys.stderr, flush=True)
            time.sleep(1)


if __name__ == "__main__":
    main()
