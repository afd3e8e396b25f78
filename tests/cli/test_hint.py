"""What the last line of a command says of runs that Ray slowed down."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from raysim.cli import run
from raysim.cli.run import hint


def tasks(*rows: tuple[str, float, float]) -> pa.Table:
    workers, starts, took = zip(*rows, strict=True)
    return pa.table({"worker": workers, "started_s": starts, "seconds": took})


TABLES = {
    "beside": tasks(("client-0", 0.0, 2.0), ("client-1", 1.0, 2.0), ("server-0", 3.0, 0.5), ("client-0", 5.0, 1.0)),
    "after": tasks(("client-0", 0.0, 2.0), ("server-0", 3.0, 0.5), ("client-0", 5.0, 1.0)),
}


@pytest.mark.parametrize(
    ("folders", "took", "processes", "told"),
    [
        (
            "beside",
            20.0,
            None,
            "jobs took 4.5 of 20.0 s with the start, and Ray the rest; --local 2 would save up to 15.5 s",
        ),
        (
            "after",
            20.0,
            None,
            "jobs took 3.5 of 20.0 s with the start, and Ray the rest; --inline would save up to 16.5 s",
        ),
        (
            "beside",
            20.0,
            2,
            "jobs took 2.8 of 20.0 s with the start, and Ray the rest; --inline would save up to 17.2 s",
        ),
        (
            "beside after",
            20.0,
            None,
            "jobs took 8.0 of 20.0 s with the start, and Ray the rest; --local 2 would save up to 12.0 s",
        ),
        ("beside", 8.0, None, None),
    ],
)
@pytest.mark.parametrize("own", [True, False])
def test_what_would_be_sooner_than_a_ray_of_its_own_follows_from_measured_times(
    folders: str,
    took: float,
    processes: int | None,
    told: str | None,
    own: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Jobs of two workers count once where they are at work side by side. Nothing is said of a Ray that was there."""
    monkeypatch.setitem(sys.modules, "actors.placement", SimpleNamespace(started_here=lambda: own))
    monkeypatch.setattr(run, "Result", lambda folder: SimpleNamespace(table=lambda name: TABLES[str(folder)]))
    monkeypatch.setattr("time.perf_counter", lambda: 100.0 + took)
    hint(100.0, [Path(folder) for folder in folders.split()], processes)
    assert capsys.readouterr().out.strip() == (f"{told}, with the same numbers" if told and own else "")
