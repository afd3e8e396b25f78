"""What run.json says of a run, as a type: `RunRecord`."""

from __future__ import annotations

import platform
from dataclasses import MISSING, dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from raysim.engine.checkpoint import Checkpoint
from raysim.scenario import Scenario
from raysim.scenario.block_checks import watts_of
from raysim.scenario.dependencies import code_changes
from results import write_json
from results.ending import Status
from results.info import read_info

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

    def beginning_again(self, before: RunRecord, what: str) -> RunRecord:
        """Returns it with a note of what has changed since an earlier record. what: was done in spite of that."""
        return self.noting(*code_changes(before.content, self.content, what))


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
