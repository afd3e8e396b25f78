"""What the last line of a command says of runs that Ray slowed down."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from raysim.cli import hint
from raysim.cli.hint import CommandClock, JobTimes


def tasks(*rows: tuple[str, float, float]) -> pa.Table:
    workers, starts, took = zip(*rows, strict=True)
    return pa.table({"worker": workers, "started_s": starts, "seconds": took})


BESIDE = tasks(("client-0", 0.0, 2.0), ("client-1", 1.0, 2.0), ("server-0", 3.0, 0.5), ("client-0", 5.0, 1.0))
AFTER = tasks(("client-0", 0.0, 2.0), ("server-0", 3.0, 0.5), ("client-0", 5.0, 1.0))


def test_jobs_of_two_workers_count_once_where_they_are_at_work_side_by_side() -> None:
    assert JobTimes.of([BESIDE]) == (5.5, 4.5, 2)
    assert JobTimes.of([AFTER]) == (3.5, 3.5, 1)
    assert JobTimes.of([BESIDE, AFTER]) == (9.0, 8.0, 2)


@pytest.mark.parametrize(
    ("table", "took", "processes", "told"),
    [
        (BESIDE, 20.0, None, "jobs took 4.5 of 20.0 s, and Ray the rest; --local 2 would save up to 15.5 s"),
        (AFTER, 20.0, None, "jobs took 3.5 of 20.0 s, and Ray the rest; --inline would save up to 16.5 s"),
        (BESIDE, 20.0, 2, "jobs took 2.8 of 20.0 s, and Ray the rest; --inline would save up to 17.2 s"),
        (BESIDE, 8.0, None, None),
    ],
)
def test_what_would_be_sooner_follows_from_measured_times(
    table: pa.Table, took: float, processes: int | None, told: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "actors.placement", SimpleNamespace(started_here=lambda: True))
    monkeypatch.setattr(hint, "Result", lambda folder: SimpleNamespace(table=lambda name: table))
    times = iter([100.0, 100.0 + took])
    monkeypatch.setattr("time.perf_counter", lambda: next(times))
    found = CommandClock().sooner(Path("run"), processes=processes)
    assert found == (told and f"{told}, with the same numbers")


def test_nothing_is_said_of_a_ray_that_was_there_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "actors.placement", SimpleNamespace(started_here=lambda: False))
    assert CommandClock().sooner(Path("run")) is None
