"""Make a wheel for one platform, with the program in it, without a network: wheel.py PROGRAM PLATFORM DIRECTORY.

PLATFORM is a tag such as manylinux_2_17_x86_64, musllinux_1_2_aarch64 or macosx_11_0_arm64. The program is static, so
that one build is right for manylinux and musllinux.
"""

import base64
import hashlib
import re
import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).parent
EPOCH = (2020, 1, 1, 0, 0, 0)  # the same input makes the same wheel


def main(program, platform, directory):
    package = HERE / "bowsprit"
    version = re.search(r'^__version__ = "(.+)"$', (package / "__init__.py").read_text(), re.MULTILINE)[1]
    files = {f"bowsprit/{file.name}": file.read_bytes() for file in sorted(package.glob("*.py"))}
    name = "bowsprit.exe" if platform.startswith("win") else "bowsprit"
    files[f"bowsprit/bin/{name}"] = Path(program).read_bytes()
    info = f"bowsprit-{version}.dist-info"
    files[f"{info}/METADATA"] = metadata(version).encode()
    files[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: bowsprit\nRoot-Is-Purelib: false\nTag: py3-none-{platform}\n".encode()
    )
    files[f"{info}/entry_points.txt"] = b"[pytest11]\nbowsprit = bowsprit.pytest_plugin\n"
    record = "".join(f"{file},sha256={digest(data)},{len(data)}\n" for file, data in files.items())
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    out = Path(directory) / f"bowsprit-{version}-py3-none-{platform}.whl"
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as wheel:
        for file, data in files.items():
            entry = zipfile.ZipInfo(file, EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if "/bin/" in file else 0o100644) << 16
            wheel.writestr(entry, data)
    return out


def metadata(version):
    return (
        f"Metadata-Version: 2.1\nName: bowsprit\nVersion: {version}\n"
        "Summary: A Kubernetes API server for tests, with a pytest plugin\n"
        "License: Apache-2.0\nRequires-Python: >=3.9\nDescription-Content-Type: text/markdown\n\n"
        + (HERE / "README.md").read_text()
    )


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    print(main(*sys.argv[1:]))
