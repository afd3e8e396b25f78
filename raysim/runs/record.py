"""What a run leaves in its folder beside its tables: run.json, as a type, and models, with their digests."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from raysim.engine.checkpoint import Checkpoint
from raysim.engine.simulation import Final
from raysim.scenario import Scenario
from raysim.scenario.block_checks import watts_of
from raysim.scenario.dependencies import code_changes
from results import NotARun, Run, write_json
from results.disk import CannotWrite, replacing, require_space
from results.info import Status, read_info
from results.location import local_copy

Block = dict[str, Any]
VERSIONS = ("raysim", "numpy", "ray", "torch")


@dataclass(frozen=True)
class RunRecord:
    """The content of run.json. A record is never changed: methods, and `replace`, return another.

    Of one that was read from a damaged file, a field may be None although its type says otherwise.
    """

    run: str  # the run's id, which is the name of its folder
    name: str
    status: Status
    scenario: Block  # with all defaults
    scenario_hash: str
    seed: int
    versions: dict[str, str | None]  # of Python and of packages
    started_at: str
    depends_on: Block | None
    git: Block | None
    notes: list[str]
    finished_at: str | None
    ended_early: str | None
    ended_by: str | None
    diverged: Block | None
    error: str | None
    # Fields below are left out of run.json while they are None.
    holder: Block | None = None  # the process that writes the run
    larger_is_better: dict[str, bool] | None = None
    groups: dict[str, Any] | None = None
    watts: Any = None
    levels: dict[str, Any] | None = None  # of `capacity`: how many clients have each, and what it costs
    models: dict[str, Any] | None = None  # of groups with other architectures: how many clients, and what it costs
    sweep: Block | None = None
    dry: bool | None = None
    forking: Block | None = None  # the origin of a fork that has not come to its version
    forked_from: Block | None = None
    resumed: list[Block] | None = None
    machines: list[Block] | None = None
    workers: list[Block] | None = None
    data: dict[str, Any] | None = None
    parameters: int | None = None
    input_shape: Any = None
    classes: int | None = None
    digest: dict[str, str] | None = None
    left: Block | None = None  # the last good models of a run that ended early
    totals: Block | None = None
    best: Block | None = None
    privacy: Block | None = None  # what the run guarantees
    rows: dict[str, int] | None = None
    seconds: dict[str, float | None] | None = None
    further: Block = field(default_factory=dict)  # keys that this version does not know

    @classmethod
    def begun(cls, scenario: Scenario, run: str, status: Status, **facts: Any) -> RunRecord:
        """Returns the record at the start of a run. facts: further fields."""
        given: Block = {
            "larger_is_better": scenario.run.directions if scenario.run.metrics else None,
            "groups": scenario.groups.members if scenario.clients else None,
            "watts": watts_of(scenario),
            **dict.fromkeys(("depends_on", "git", "finished_at", "ended_early", "ended_by"), None),
            **dict.fromkeys(("diverged", "error"), None),
            "notes": [],
        }
        return cls(
            run=run,
            name=scenario.name,
            status=status,
            scenario=scenario.resolved(),
            scenario_hash=scenario.hash,
            seed=scenario.seed,
            versions={"python": platform.python_version(), **{name: installed(name) for name in VERSIONS}},
            started_at=now(),
            **given | facts,
        )

    @classmethod
    def read(cls, folder: Path) -> RunRecord | None:
        """Returns the record in a run's folder; None if there is no run.json. Raises NotARun if it is damaged."""
        if not (folder / "run.json").exists():
            return None
        info = read_info(folder)
        known = {one.name: info.pop(one.name, None) for one in fields(cls) if one.name != "further"}
        return cls(**known | {"status": Status(known["status"])}, further=info)

    def write(self, folder: Path) -> None:
        """Writes run.json into a run's folder."""
        write_json(folder, self.content)

    @property
    def content(self) -> Block:
        """The content of run.json, as plain data."""
        optional = {one.name for one in fields(self) if one.default is None}
        named = {one.name: getattr(self, one.name) for one in fields(self) if one.default_factory is MISSING}
        return {key: value for key, value in named.items() if key not in optional or value is not None} | self.further

    def noting(self, *notes: str) -> RunRecord:
        """Returns it with these notes, each of them once."""
        return replace(self, notes=list(dict.fromkeys([*(self.notes or []), *notes])))

    def ended(self, status: Status, **outcome: Any) -> RunRecord:
        """Returns the record of a run that has ended now. outcome: further fields."""
        found = replace(self, status=status, finished_at=now(), **outcome)
        return replace(found, ended_by=status.ended_by or found.ended_by)

    def going_on(self, before: RunRecord | None, checkpoint: Checkpoint | None, *, resumed: bool) -> RunRecord:
        """Returns the record of a run that continues. before: the record of its earlier part, if there is one.

        resumed: whether this is to be told as a resumption.
        """
        version, round = (checkpoint.version, checkpoint.round) if checkpoint else (0, 0)
        again = [{"resumed_at": now(), "version": version, "round": round}] if resumed else []
        if before is None:
            return replace(self, resumed=again)
        found = replace(
            self,
            started_at=before.started_at or self.started_at,
            forked_from=self.forked_from or before.forked_from,
            resumed=[*(before.resumed or []), *again],
        )
        if checkpoint is None:
            return found
        sentences = code_changes(before.content, found.content, f"continued from version {version}")
        mixed = [*(before.depends_on or {}).get("mixed", []), *(f"it {text}" for text in sentences)]
        return replace(
            found,
            depends_on={**(found.depends_on or {}), "mixed": mixed},
            notes=list(dict.fromkeys([*(before.notes or []), *found.notes, *sentences])),
            machines=before.machines or None,
        )


@cache
def installed(package: str) -> str | None:
    """Returns the version of a package; None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:  # it is on the path, but not installed
        return None


def now() -> str:
    """Returns the current date and time in UTC, as ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def save(folder: Path, final: Final, entries: Sequence[tuple[str, tuple[int, ...], int]]) -> None:
    """Writes model.safetensors and, if there are any, clients' own models and the best one beside it.

    All hold flat vectors `w` and `buffers`, with a row for each peer or client if there are several. Their metadata
    say where in `w` each parameter lies. entries: the name, shape and offset in `w` of each parameter.
    """
    parameters = json.dumps([list(entry) for entry in entries])
    order = "parameters of four dimensions (O, I, H, W) are stored as (O, H, W, I), except by the model `module`"
    metadata = {"parameters": parameters, "order": order}
    for name, vectors in (("model", final.model), ("clients", final.clients), ("best", final.best)):
        path = folder / f"{name}.safetensors"
        if vectors is None:
            path.unlink(missing_ok=True)  # that of an earlier end, before the run was extended
            continue
        require_space(folder, sum(vector.nbytes for vector in vectors.values()))
        with replacing(path) as hidden:
            hidden.touch()
            mode = hidden.stat().st_mode  # as for all files of the run; the library would keep others from reading it
            try:
                save_file(vectors, hidden, metadata=metadata)
                hidden.chmod(mode)
            except SafetensorError as error:  # the library raises it for errors of the operating system, too
                raise CannotWrite(path, str(error), True) from None


def read(run: Run, which: str) -> dict[str, Any]:
    """Returns the arrays in a file that a run leaves at its end. which: model, clients or best.

    Raises FileNotFoundError before the end, and NotARun if the file is damaged. A run that is being extended has the
    file of its earlier end.
    """
    left = run.info.get("digest" if run.status == "finished" else "left") or {}
    name = f"{which}.safetensors"
    if which not in left and run.status != "finished":
        text = f"must be finished to have {name}, got a run that is {run.standing}, and left none"
        raise FileNotFoundError(f"{run.folder}: {text}")
    if which == "best" and which not in left:
        raise FileNotFoundError(f"{run.folder}: must be a run with run.keep_best to have {name}, got one without")
    file = run.folder / name
    try:
        with local_copy(file) as copy:
            tensors = dict(load_file(copy))
    except FileNotFoundError:
        raise
    except (SafetensorError, OSError) as error:
        raise NotARun(f"{file}: must be a whole file of tensors, got {error}; run the scenario again") from error
    known, found = left.get(which), digest_of(tensors)
    if known not in (None, found):
        text = f"must be as the run wrote it, with the digest {known} that run.json names, got {found}"
        raise NotARun(f"{file}: {text}; copy it again from where it is whole, or run it again")
    return tensors


def digest(model: dict[str, np.ndarray], tables: str) -> dict[str, str]:
    """Returns SHA-256 digests of the final model, of the tables, and of both together (`run`).

    tables: the digest of the tables, which leaves out measured wall times. Runs with the same bits have equal digests.
    """
    parts = {"model": digest_of(model), "tables": tables}
    return {**parts, "run": hashlib.sha256("".join(parts.values()).encode()).hexdigest()}


def digests(final: Final) -> dict[str, str]:
    """Returns the SHA-256 digest of each file of models that a run leaves, by its name without the suffix."""
    files = {"model": final.model, "clients": final.clients, "best": final.best}
    return {name: digest_of(vectors) for name, vectors in files.items() if vectors is not None}


def digest_of(vectors: dict[str, np.ndarray]) -> str:
    """Returns the SHA-256 of vectors by name."""
    hashed = hashlib.sha256()
    for key in sorted(vectors):
        hashed.update(key.encode())
        hashed.update(np.ascontiguousarray(vectors[key]).data)
    return hashed.hexdigest()
