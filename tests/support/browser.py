"""Chromium without a window, for tests of pages."""

import shutil
import subprocess
from pathlib import Path

from waiting import PATIENT_S

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")
QUIET = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-sync", "--no-first-run"]
QUIET += ["--disable-background-networking", "--disable-component-update", "--hide-scrollbars"]


def chromium(folder: Path, *options: str) -> str:
    """What it prints. folder: where it may keep its own files."""
    command = [str(CHROMIUM), *QUIET, f"--user-data-dir={folder / 'profile'}", *options]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENT_S).stdout
