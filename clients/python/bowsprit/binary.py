"""The program that the package starts."""

import os
import shutil
from pathlib import Path

# PACKAGED is the program in a wheel for one platform.
PACKAGED = Path(__file__).parent / "bin" / ("bowsprit.exe" if os.name == "nt" else "bowsprit")


def find_binary(path=None):
    """Return the program: path, else the variable BOWSPRIT, the wheel's own program, or bowsprit in PATH."""
    for source, given in (("binary", path), ("the variable BOWSPRIT", os.environ.get("BOWSPRIT"))):
        if given:
            found = shutil.which(os.path.expanduser(given))
            if not found:
                raise FileNotFoundError(f"{source} is {str(given)!r}, and that is no program")
            return found
    found = str(PACKAGED) if os.access(PACKAGED, os.X_OK) else shutil.which("bowsprit")
    if not found:
        raise FileNotFoundError(
            "bowsprit is not installed: install the wheel for your platform, or set the variable BOWSPRIT to the "
            "program, or put it into a directory of PATH"
        )
    return found
