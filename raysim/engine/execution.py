"""A run and its folder: what the scheduler actor, or this process, carries out."""

from __future__ import annotations

import hashlib
import json
import platform
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from actors import JobFailed, Pool
from raysim.algorithms import Peer
from raysim.engine.peers.family import PeersSimulation
from raysim.engine.peers.jobs import PeersTasks
from raysim.engine.server.family import Progress, Simulation
from raysim.engine.server.jobs import Tasks
from raysim.scenario import Scenario
from results import Writer, write_json

VERSIONS = ("raysim", "numpy", "ray", "torch")


@dataclass(frozen=True)
class Engine:
    """Calling it with a pool does the run, yields Progress, and leaves tables, model and run.json in the folder."""

    scenario: Scenario
    folder: Path
    run: str

    def __call__(self, pool: Pool) -> Iterator[Progress]:
        """Raises JobFailed where a task does; the tables stay readable and run.json says how it ended."""
        started = time.perf_counter()
        info = run_info(self.scenario, self.run, "running")
        write_json(self.folder, info)
        writer = Writer(self.folder, self.run)
        simulation = simulate(self.scenario, pool, writer)
        try:
            yield from simulation.run()
            save_model(self.folder, simulation)
            info |= {
                "status": "finished",
                "parameters": simulation.described.parameters,
                "input_shape": list(simulation.described.shape),
                "classes": simulation.described.classes,
                "digest": digest(simulation.model, writer.digest()),
            }
        except JobFailed as failed:
            info |= {"status": "failed", "error": f"{failed}\n{failed.traceback}".strip()}
            raise
        except Exception:  # of the timeline, such as a script of picks that cannot be followed
            info |= {"status": "failed", "error": traceback.format_exc()}
            raise
        except BaseException:  # such as Ctrl-C, or whoever watches does no longer
            info["status"] = "interrupted"
            raise
        finally:
            writer.close()
            total = time.perf_counter() - started
            info |= {"finished_at": now(), "totals": simulation.totals, "ended_early": simulation.ended_early}
            info["seconds"] = {"total": total, "loop": getattr(simulation, "loop_s", None)}
            write_json(self.folder, info)

    def settle(self, status: str, error: str | None = None, early: str | None = None) -> None:
        """Corrects run.json where who carried out the run went without a word, or cannot know why it was ended."""
        path = self.folder / "run.json"
        info = json.loads(path.read_text()) if path.exists() else run_info(self.scenario, self.run, "running")
        if info["status"] == "running" or status == "stopped":
            ended = {"status": status, "error": error, "ended_early": early, "finished_at": now()}
            write_json(self.folder, info | ended)


def simulate(scenario: Scenario, pool: Pool, writer: Writer) -> Simulation | PeersSimulation:
    """A run of the scenario, with a server or without."""
    if isinstance(scenario.algorithm, Peer):
        return PeersSimulation(scenario, PeersTasks(scenario, pool), writer)
    return Simulation(scenario, Tasks(scenario, pool), writer)


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
    """As ISO 8601, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def save_model(folder: Path, simulation: Simulation | PeersSimulation) -> None:
    """model.safetensors: flat vectors `w` and `buffers`; of peers, a row each. clients.safetensors, if there are any.

    Its metadata say which parameter lies where in `w`; `Result.state_dict` gives them by name.
    """
    entries = json.dumps([list(entry) for entry in simulation.described.entries])
    metadata = {"parameters": entries, "order": "parameters of four dimensions (O, I, H, W) are stored as (O, H, W, I)"}
    save_file(simulation.model, folder / "model.safetensors", metadata=metadata)
    if isinstance(simulation, Simulation) and simulation.clients is not None:
        save_file(simulation.clients, folder / "clients.safetensors", metadata=metadata)


def digest(model: dict[str, np.ndarray], tables: str) -> dict[str, str]:
    """Of the final model and all that the tables say, but readings of the stopwatch: the same bits, the same digest."""
    hashed = hashlib.sha256()
    for key in sorted(model):
        hashed.update(key.encode())
        hashed.update(np.ascontiguousarray(model[key]).data)
    parts = {"model": hashed.hexdigest(), "tables": tables}
    return {**parts, "run": hashlib.sha256("".join(parts.values()).encode()).hexdigest()}
