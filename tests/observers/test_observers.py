"""Observers see the same of a run wherever it is carried out, and whatever they do, its numbers stay."""

import logging
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import pytest
from conftest import digits
from pydantic import PrivateAttr
from stopping import stop_after

import raysim
from raysim.engine.progress import Progress
from raysim.observers import Observer, RunBegin, RunEnd
from raysim.scenario.dependencies import depends_on
from results import TABLES

TOLD = {"evaluations", "steps", "updates", "partition"}


class Recording(Observer):
    """Remembers what it is told, and its copies for the runs of a sweep."""

    _events: list[tuple[str, Any]] = PrivateAttr(default_factory=list)
    _copies: list[Any] = PrivateAttr(default_factory=list)

    @property
    def tables(self) -> set[str]:
        return TOLD

    @property
    def events(self) -> list[tuple[str, Any]]:
        return self._events

    @property
    def runs(self) -> list[Self]:
        return self._copies

    def for_run(self) -> Self:
        self._copies.append(type(self)())
        copy: Self = self._copies[-1]
        return copy

    def begin(self, run: RunBegin) -> None:
        self._events.append(("begin", run))

    def progress(self, progress: Progress) -> None:
        self._events.append(("progress", progress))

    def rows(self, table: str, rows: Sequence[dict[str, Any]]) -> None:
        self._events.append((table, rows))

    def end(self, end: RunEnd) -> None:
        self._events.append(("end", end))

    def all_of(self, kind: str) -> list[Any]:
        return [value for name, value in self._events if name == kind]

    def table(self, name: str) -> list[dict[str, Any]]:
        return [row for rows in self.all_of(name) for row in rows]


class Failing(Recording):
    """Raises an exception whenever it is told something of a kind."""

    at: str

    def begin(self, run: RunBegin) -> None:
        super().begin(run)
        self.fail("begin")

    def progress(self, progress: Progress) -> None:
        super().progress(progress)
        self.fail("progress")

    def end(self, end: RunEnd) -> None:
        super().end(end)
        self.fail("end")

    def fail(self, told: str) -> None:
        if told == self.at:
            raise OSError("no connection")


def scenario(**more: Any) -> raysim.Scenario:
    return raysim.parse_scenario(digits(run__rounds=6, run__evaluate_every=2, **more))


def check(seen: Recording, result: raysim.Result) -> None:
    """It saw a run from its begin to its end, with all rows as the tables hold them."""
    (begin,), (end,) = seen.all_of("begin"), seen.all_of("end")
    assert [seen.events[0][0], seen.events[-1][0]] == ["begin", "end"]
    assert (begin.run, begin.folder) == (result.info["run"], result.folder)
    assert begin.scenario == result.info["scenario"]
    assert (end.status, end.info) == (result.info["status"], result.info)
    for name in TOLD:
        columns = [field.name for field in TABLES[name] if field.name != "run"]
        written = result.table(name).select(columns).to_pylist()
        told = [{column: row.get(column) for column in columns} for row in seen.table(name)]
        assert len(told) == len(written)
        for row, expected in zip(told, written, strict=True):
            texts = {key for key, value in expected.items() if isinstance(value, str | None)}
            assert {key: row[key] for key in texts} == {key: expected[key] for key in texts}
            for key in expected.keys() - texts:
                assert row[key] == pytest.approx(expected[key], rel=1e-6), (name, key)  # some are kept in 32 bits


def test_a_run_is_seen_from_begin_to_end_with_its_rows_as_written(tmp_path: Path) -> None:
    seen = Recording()
    result = raysim.run(scenario(), out=tmp_path, inline=True, observers=[seen])
    check(seen, result)
    (begin,), (end,) = seen.all_of("begin"), seen.all_of("end")
    assert (begin.round, begin.steps, begin.sweep, begin.label) == (0, 0, None, "digits")
    told = seen.all_of("progress")
    assert {2, 4, 6} <= {progress.round for progress in told}
    assert end.progress == told[-1]
    assert told[-1].totals.items() >= {key: result.info["totals"][key] for key in ("used", "steps", "rounds")}.items()
    assert told[-1].traffic.keys() == {"up", "down"}
    place = [name for name, _ in seen.events].index("progress")
    assert seen.events[place - 1][0] in TOLD  # the rows of a round come before its progress


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
@pytest.mark.slow
def test_it_is_the_same_on_ray_and_in_processes(tmp_path: Path) -> None:
    alone, on_ray, swept = Recording(), Recording(), Recording()
    result = raysim.run(scenario(), out=tmp_path / "alone", inline=True, observers=[alone])
    check(on_ray, raysim.run(scenario(), out=tmp_path / "ray", observers=[on_ray]))
    both = [scenario(seed=0), scenario(seed=1)]
    outcomes = raysim.run_all(both, out=tmp_path / "swept", observers=[swept])
    outcomes += raysim.run_all(both, out=tmp_path / "inline", inline=True, observers=[swept])
    by_folder = {copy.all_of("begin")[0].folder: copy for copy in swept.runs}
    for place, outcome in enumerate(outcomes):
        assert outcome.folder is not None
        copy = by_folder.pop(outcome.folder)
        check(copy, raysim.Result(outcome.folder))
        (begin,) = copy.all_of("begin")
        assert (begin.sweep, begin.label) == (("swept", "inline")[place // 2], f"seed={place % 2}")
    assert not by_folder and not swept.events
    assert on_ray.table("evaluations") == alone.table("evaluations")
    assert raysim.Result(outcomes[0].folder or "").digest == raysim.Result(outcomes[2].folder or "").digest
    assert result.digest == raysim.Result(outcomes[0].folder or "").digest


@pytest.mark.parametrize("at", ["begin", "progress", "end"])
def test_an_observer_that_fails_is_told_of_once_and_ends_no_run(
    at: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    failing, seen = Failing(at=at), Recording()
    result = raysim.run(scenario(), out=tmp_path, inline=True, observers=[failing, seen])
    check(seen, result)
    (told,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert told.startswith("the run continues, but an observer failed: Failing: OSError: no connection, at ")
    assert failing.events[-1][0] == ("begin" if at == "begin" else "end")


def test_observers_of_a_scenario_change_neither_its_hash_nor_whether_runs_are_out_of_date(tmp_path: Path) -> None:
    plain, named = scenario(), scenario(run__observers=["toys_parts:Counting"])
    assert plain.hash == named.hash
    assert depends_on(plain) == depends_on(named)
    assert raysim.Scenario.model_validate(named.model_dump()).run.observers == named.run.observers
    one = raysim.run(named, out=tmp_path, inline=True)
    seen, status = (one.folder / "counted.txt").read_text().split()
    assert int(seen) >= 3 and status == "finished"
    (outcome,) = raysim.run_all([plain], out=tmp_path, inline=True)
    assert outcome.status == "done before"


def test_a_resumed_run_is_seen_from_its_checkpoint_on(tmp_path: Path) -> None:
    early = raysim.run(scenario(), out=tmp_path, inline=True, observers=[stop_after(3)])
    seen = Recording()
    result = raysim.resume(early.folder, inline=True, observers=[seen])
    (begin,), (end,) = seen.all_of("begin"), seen.all_of("end")
    assert 3 <= begin.round <= 6 and begin.steps > 0
    assert (end.status, seen.all_of("progress")[-1].round) == ("finished", 6)
    last = seen.table("steps")
    assert [row["step"] for row in last] == list(range(begin.steps + 1, result.info["totals"]["steps"] + 1))


def test_a_fork_is_one_run_with_its_past(tmp_path: Path) -> None:
    seen = Recording()
    whole = raysim.run(scenario(), out=tmp_path / "runs", inline=True)
    shutil.rmtree(whole.folder / "checkpoint", ignore_errors=True)  # so that the fork begins with the run's past
    check(seen, raysim.fork(whole.folder, 2, ["local.lr=0.2"], out=tmp_path / "forks", inline=True, observers=[seen]))


@pytest.mark.parametrize("how", ["stopped", "failed", "interrupted"])
def test_whatever_ends_a_run_its_observers_see_the_end(how: str, tmp_path: Path) -> None:
    def end(progress: Progress) -> None:
        raise {"stopped": raysim.StopRun("enough"), "interrupted": KeyboardInterrupt()}[how]

    seen, ends = Recording(), [] if how == "failed" else [end]
    fails = scenario(algorithm={"name": "toys:Failing", "client_id": 1})
    try:
        raysim.run(fails if how == "failed" else scenario(), out=tmp_path, inline=True, observers=[*ends, seen])
    except (raysim.RunFailed, KeyboardInterrupt):
        assert how != "stopped"
    (told,) = seen.all_of("end")
    assert (told.status, seen.events[-1][0]) == (how, "end")
    assert how == "failed" or told.why == {"stopped": "enough", "interrupted": None}[how]


def test_tables_that_there_are_not_are_refused(tmp_path: Path) -> None:
    class Lost(Observer):
        @property
        def tables(self) -> list[str]:
            return ["stepz"]

    with pytest.raises(ValueError, match=r"table: must be one of steps, .*got 'stepz'"):
        raysim.run(scenario(), out=tmp_path, inline=True, observers=[Lost()])
    assert list(tmp_path.iterdir()) == []
