"""What a run's folder holds beside its tables: run.json and the final models."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from raysim.engine.family import Final
from raysim.scenario import Scenario

VERSIONS = ("raysim", "numpy", "ray", "torch")


def run_info(scenario: Scenario, run: str, status: str) -> dict[str, Any]:
    """run.json as it stands at the start."""
    return {
        "run": run,
        "name": scenario.name,
        "status": status,
        "scenario": scenario.resolved(),
        "scenario_hash": scenario.hash,
        "seed": scenario.seed,
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in VERSIONS}},
        "started_at": now(),
        "finished_at": None,
        "ended_early": None,
        "error": None,
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:  # on the path without being installed
        return None


def now() -> str:
    """The time of day as ISO 8601, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def save(folder: Path, final: Final, entries: Sequence[tuple[str, tuple[int, ...], int]]) -> None:
    """Writes model.safetensors: flat vectors `w` and `buffers`, a row a peer where there are peers; and
    clients.safetensors, if clients' own models are kept.

    Their metadata say which parameter lies where in `w`; `Result.state_dict` gives them by name. entries: the name,
    shape and offset of each.
    """
    parameters = json.dumps([list(entry) for entry in entries])
    order = "parameters of four dimensions (O, I, H, W) are stored as (O, H, W, I)"
    metadata = {"parameters": parameters, "order": order}
    save_file(final.model, folder / "model.safetensors", metadata=metadata)
    if final.clients is not None:
        save_file(final.clients, folder / "clients.safetensors", metadata=metadata)


def digest(model: dict[str, np.ndarray], tables: str) -> dict[str, str]:
    """SHA-256 of the final model and of all that the tables say but readings of the stopwatch: the same bits have the
    same digest. tables: the digest of the tables."""
    hashed = hashlib.sha256()
    for key in sorted(model):
        hashed.update(key.encode())
        hashed.update(np.ascontiguousarray(model[key]).data)
    parts = {"model": hashed.hexdigest(), "tables": tables}
    return {**parts, "run": hashlib.sha256("".join(parts.values()).encode()).hexdigest()}
