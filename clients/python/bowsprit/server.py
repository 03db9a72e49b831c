"""A server in a process of its own, which ends with this one."""

import asyncio
import atexit
import contextlib
import http.client
import itertools
import json
import os
import re
import shlex
import shutil
import signal
import ssl
import subprocess
import tempfile
import threading
import time
import urllib.parse
import weakref
from pathlib import Path

from .binary import find_binary
from .kubeconfig import Credentials

_running = weakref.WeakSet()


class BowspritError(Exception):
    """A server that does not start, or a request or command that it refuses.

    status is the code of the response to a request, or None.
    """

    def __init__(self, message, status=None):
        super().__init__(message)
        self.status = status


class Server:
    """A server without a data directory, on a free port of 127.0.0.1.

    simulate runs controllers, and simulates nodes and pods: True, or settings such as {"nodes": 3}. install has files
    and directories with definitions and other objects. args are further arguments of "bowsprit serve". timeout bounds
    the start in seconds.

    A Server is a context manager, also for "async with". It stops with this process, even if the process is killed.
    """

    def __init__(self, *, binary=None, simulate=None, install=(), args=(), timeout=60.0):
        self.url = None
        self.kubeconfig = None
        self._binary, self._simulate, self._install = binary, simulate, install
        self._args, self._timeout = list(args), timeout
        self._process = self._directory = self._data = self._admin = self._tls = None
        self._files = itertools.count(1)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    async def __aenter__(self):
        return await asyncio.get_running_loop().run_in_executor(None, self.start)

    async def __aexit__(self, *_):
        await asyncio.get_running_loop().run_in_executor(None, self.stop)

    @property
    def running(self):
        return self._process is not None and self._process.poll() is None

    def start(self):
        """Start the server, and return it when it answers and everything is installed."""
        if self._process is not None:
            raise BowspritError("the server has been started already")
        self._binary = find_binary(self._binary)
        self._directory = Path(tempfile.mkdtemp(prefix="bowsprit-python-"))
        try:
            self._launch()
            self._connect()
            if self._install:
                self.install(*self._install)
        except BaseException:
            self.stop()
            raise
        return self

    def _launch(self):
        command = [self._binary, "serve", "--ephemeral", "--secure-port=0", "--stop-with-stdin"]
        command += [*_simulate(self._simulate), *self._args]
        env = {**os.environ, "TMPDIR": str(self._directory)}
        env.pop("KUBECONFIG", None)
        with open(self._directory / "log", "wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,  # its end stops the server, also if this process is killed
                stdout=subprocess.PIPE,
                stderr=log,
                env=env,
                text=True,
                start_new_session=True,  # Ctrl-C is for this process: fixtures still need the server
            )
        _running.add(self)
        ready = threading.Event()
        threading.Thread(target=self._read, args=(self._process.stdout, ready), daemon=True).start()
        in_time = ready.wait(self._timeout)
        if self.url and self._data:
            return
        reason = "ended" if in_time else f"is not ready after {self._timeout} seconds"
        raise BowspritError(f"{shlex.join(command)} {reason}:\n{self.log()}")

    def _read(self, output, ready):
        """Read the server's output to its end."""
        for line in output:
            if found := re.match(r"Bowsprit is ready at (\S+)", line):
                self.url = found[1]
            elif found := re.match(r"\s+export KUBECONFIG=(.+)", line):
                self._data = Path(shlex.split(found[1])[0]).parent
            elif line.startswith("Stop with"):
                ready.set()
        ready.set()

    def _connect(self):
        self._admin = Credentials((self._data / "kubeconfig").read_text())
        self.kubeconfig = self._admin.write(self._directory / "kubeconfig")
        self._tls = ssl.create_default_context(cadata=self._admin.authority_pem())
        self._tls.load_cert_chain(self._admin.write_pem(self._directory / "admin.pem"))

    def stop(self):
        """Stop the server and remove its files. A stopped server stays stopped."""
        process = self._process
        if process is not None and process.returncode is None:
            with contextlib.suppress(OSError):
                process.stdin.close()
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            try:
                process.wait(self._timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        _running.discard(self)
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)

    def _forget(self):
        """Leave the server to the parent process, in a child that was made by fork."""
        with contextlib.suppress(OSError):
            os.close(self._process.stdin.fileno())
        self._process = self._directory = None

    def log(self, since=0):
        """Return the server's log, from a position of log_size on."""
        try:
            with open(self._directory / "log", "rb") as file:
                file.seek(since)
                return file.read().decode(errors="replace")
        except (OSError, TypeError):  # stopped, or not started
            return ""

    def log_size(self):
        """Return the length of the server's log in bytes."""
        try:
            return (self._directory / "log").stat().st_size
        except (OSError, TypeError):
            return 0

    def install(self, *paths, kubeconfig=None):
        """Apply files, and all YAML and JSON files of directories. Wait until definitions are served."""
        self._run("import", *map(str, paths), f"--kubeconfig={kubeconfig or self.kubeconfig}")

    def kubectl(self, *args, input=None, kubeconfig=None):
        """Run the built-in kubectl and return its output."""
        return self._run("kubectl", *args, input=input, kubeconfig=kubeconfig or self.kubeconfig)

    def user(self, name, *, groups=(), namespace="default"):
        """Return the path of a kubeconfig for a user. Without a binding the user has no permissions."""
        text = self._run(
            "kubeconfig", f"--user={name}", f"--data-dir={self._data}", *(f"--group={group}" for group in groups)
        )
        return Credentials(text).write(self._file("user"), namespace)

    @contextlib.contextmanager
    def namespace(self, prefix="test"):
        """Create a namespace with a unique name, and delete it at the end."""
        made = self.request("POST", "/api/v1/namespaces", {"metadata": {"generateName": prefix + "-"}})
        name = made["metadata"]["name"]
        try:
            yield Namespace(self, name, self._admin.write(self._file("namespace"), name))
        finally:
            with contextlib.suppress(BowspritError, OSError):  # the test may have deleted it, or stopped the server
                self.request("DELETE", f"/api/v1/namespaces/{name}")

    def request(self, method, path, body=None):
        """Send a request as the administrator, and return the decoded response."""
        url = urllib.parse.urlsplit(self.url)
        connection = http.client.HTTPSConnection(url.hostname, url.port, context=self._tls, timeout=self._timeout)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {"Content-Type": "application/json", "Accept": "application/json"})
            response = connection.getresponse()
            text = response.read()
        finally:
            connection.close()
        if response.status >= 400:
            raise BowspritError(f"{method} {path}: {response.status} {_message(text)}", response.status)
        return json.loads(text)

    def wait(self, path, condition, timeout=None):
        """Read an object until condition(object) is true, and return it. A missing object is waited for."""
        end = time.monotonic() + (self._timeout if timeout is None else timeout)
        last = "it does not exist"
        while True:
            try:
                found = self.request("GET", path)
                if condition(found):
                    return found
                last = json.dumps(found.get("status", found))
            except BowspritError as error:
                if error.status != http.HTTPStatus.NOT_FOUND:
                    raise
            if time.monotonic() > end:
                raise BowspritError(f"{path} does not have the condition in time: {last}")
            time.sleep(0.02)

    def _file(self, name):
        return self._directory / f"{name}-{next(self._files)}"

    def _run(self, *args, input=None, kubeconfig=None):
        if self._directory is None:
            raise BowspritError("the server is not started")
        env = {**os.environ, "KUBECONFIG": kubeconfig} if kubeconfig else None  # a flag may not precede a plugin's name
        done = subprocess.run([self._binary, *args], input=input or "", capture_output=True, text=True, env=env)
        if done.returncode != 0:
            raise BowspritError(f"bowsprit {shlex.join(args)}: {done.stderr or done.stdout}")
        return done.stdout


class Namespace:
    """A namespace of a server, and a kubeconfig of the administrator with this namespace."""

    def __init__(self, server, name, kubeconfig):
        self.server, self.name, self.kubeconfig = server, name, kubeconfig

    def install(self, *paths):
        """Server.install, for files whose objects name their namespaces or have none."""
        self.kubectl("apply", "--server-side", *(f"--filename={path}" for path in paths))

    def kubectl(self, *args, input=None):
        """Server.kubectl in this namespace."""
        return self.server.kubectl(*args, input=input, kubeconfig=self.kubeconfig)

    def user(self, name, *, groups=(), role=None):
        """Return a kubeconfig for a user in this namespace, with a cluster role such as "edit" there."""
        if role:
            self.kubectl("create", "rolebinding", f"{name}-{role}", f"--clusterrole={role}", f"--user={name}")
        return self.server.user(name, groups=groups, namespace=self.name)


def _simulate(settings):
    if not settings:
        return []
    if settings is True:
        settings = {"nodes": 1}
    if not isinstance(settings, str):
        settings = ",".join(f"{key}={value}" for key, value in settings.items())
    return [f"--simulate={settings}"]


def _message(text):
    try:
        return json.loads(text)["message"]
    except (ValueError, KeyError, TypeError):
        return text.decode(errors="replace")


def _stop_all():
    for server in list(_running):
        server.stop()


def _forget_all():
    for server in list(_running):
        server._forget()
    _running.clear()


atexit.register(_stop_all)
if hasattr(os, "register_at_fork"):  # else the pipe would stay open until the child ends
    os.register_at_fork(after_in_child=_forget_all)
