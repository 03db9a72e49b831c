"""wheel.py: a wheel carries its program."""

import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import bowsprit

WHEEL = Path(bowsprit.__file__).parents[1] / "wheel.py"


def make(program, directory):
    directory.mkdir()
    done = subprocess.run(
        [sys.executable, WHEEL, program, "manylinux_2_17_x86_64", directory], capture_output=True, text=True, check=True
    )
    return Path(done.stdout.strip())


def test_wheel(tmp_path):
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho it runs\n")
    wheel = make(program, tmp_path / "one")
    assert wheel.name == f"bowsprit-{bowsprit.__version__}-py3-none-manylinux_2_17_x86_64.whl"
    assert hashlib.sha256(wheel.read_bytes()).digest() == hashlib.sha256(
        make(program, tmp_path / "two").read_bytes()
    ).digest()
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():  # as pip does
            file = archive.extract(entry, site)
            os.chmod(file, entry.external_attr >> 16 & 0o777)
        recorded = archive.read(f"bowsprit-{bowsprit.__version__}.dist-info/RECORD").decode()
        assert {line.split(",")[0] for line in recorded.splitlines()} == set(archive.namelist())
    script = "import bowsprit, subprocess; subprocess.run([bowsprit.find_binary()])"
    env = {"PYTHONPATH": str(site), "PATH": ""}
    done = subprocess.run([sys.executable, "-c", script], env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "it runs\n", done.stderr
