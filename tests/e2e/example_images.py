"""The example images' layouts, built once and kept in the checkout."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "images"
LAYOUTS = ROOT / "build" / "images"
ON_BASE = ("review", "web", "design", "commercial")


def build(*names: str) -> Path:
    """Build them where a file of theirs changed; the folder with a layout for each."""
    command = [sys.executable, str(IMAGES / "build.py"), *names, "--out", str(LAYOUTS)]
    subprocess.run(command, check=True, timeout=1700)
    return LAYOUTS
