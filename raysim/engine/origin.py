"""Where a run comes from: what it depends on, copies of the user's own modules, and the state of the working tree."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from raysim.scenario import Scenario
from raysim.scenario.dependencies import depends_on
from raysim.scenario.own_modules import is_installed, own_modules, own_sources, root_of

CODE = "code"  # the folder of copies, in the run's folder
LARGEST_DIFF = 2**20  # bytes
PATIENCE_S = 10.0  # how long git may take


def record_origin(scenario: Scenario, folder: Path) -> dict[str, Any]:
    """Copies the user's own modules into the run's folder, and returns what run.json says of the run's origin."""
    for module in own_modules(scenario):
        root = root_of(module)
        if root is None or not is_installed(root):
            for path, content in own_sources(scenario, module).items():
                copy = folder / CODE / path
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(content)
    return {"depends_on": depends_on(scenario), "git": _working_tree(folder)}


def _working_tree(folder: Path) -> dict[str, Any] | None:
    """Returns the commit in the current folder, and whether all is committed; None if git knows of none.

    What is not committed is written into the run's folder, unless it is large.
    """
    status = _git("status", "--porcelain=v2", "--branch", "--untracked-files=no")
    if status is None:
        return None
    lines = status.decode(errors="replace").splitlines()
    commit = next((line.split()[-1] for line in lines if line.startswith("# branch.oid ")), None)
    clean = all(line.startswith("#") for line in lines)
    diff = None if clean else _git("diff", "HEAD")
    if diff and len(diff) <= LARGEST_DIFF:
        (folder / "working_tree.diff").write_bytes(diff)
    return {"commit": commit, "clean": clean}


def _git(*words: str) -> bytes | None:
    """Returns what git answers; None if it is not installed, takes too long, or is not in a working tree."""
    try:
        answer = subprocess.run(("git", *words), capture_output=True, timeout=PATIENCE_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if answer.returncode else answer.stdout
