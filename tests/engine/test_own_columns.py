"""Columns that algorithms leave of their own accord: in every table that may have them, in reports and digests."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import Raw, Simulate, digits
from toys import Counting

import raysim
from raysim.algorithms import Arrival, Inbox, Peer, Record, SearchResult, ServerStep
from results import Writer, load
from results.report import report
from results.report.sections import SECTIONS
from results.rows import StepRow


class Logging(Counting):
    """It logs numbers from the second dispatch on, in steps, and of a search that it does not do."""

    name: str = "logging"
    where: str = "update"

    def update(self, task: Any, message: Record, state: Record) -> tuple[Record, Record]:
        after, state = super().update(task, message, state)
        if task.dispatch > 0:
            task.log(drift=(after["delta"]).norm(), dispatched=task.dispatch, nothing=None)
        return after, state

    def step(self, state: Record, arrivals: Sequence[Arrival], updates: Record, task: Any) -> Any:
        task.log(size=updates["delta"].norm())
        anchors = torch.arange(2)
        search = SearchResult(*(anchors.float() for _ in range(6)))._replace(
            anchor=anchors, client=anchors, arrived=anchors, own={"angle": anchors / 2}
        )
        return ServerStep(super().step(state, arrivals, updates, task), search=search)

    def personal(self, task: Any, message: Record, state: Record) -> Any:
        if self.where == "personal":
            task.log(drift=1.0)
        return super().personal(task, message, state)


class Wrong(Counting):
    """It logs what cannot be a column."""

    name: str = "wrong"
    column: str = "x"
    value: Any = 1.0

    def update(self, task: Any, message: Record, state: Record) -> tuple[Record, Record]:
        task.log(**{self.column: torch.zeros(2) if self.value == "vector" else self.value})
        return super().update(task, message, state)


class Gossip(Peer):
    """It logs in both of its methods."""

    name: str = "gossip"
    name_of_mix: str = "heard"

    def local(self, task: Any, state: Record) -> tuple[Record, Record]:
        trained = task.train(task.received.replace(w=state["w"]))
        task.log(drift=(trained.w - state["w"]).norm())
        return {}, {"w": trained.w, "buffers": state["buffers"]}

    def mix(self, task: Any, draft: Record, inbox: Inbox) -> Record:
        task.log(**{self.name_of_mix: len(inbox.messages)})
        return {"w": inbox.mixed("w"), "buffers": inbox.mixed("buffers")}


def server(**keys: Any) -> Raw:
    algorithm = {"name": "test_own_columns:Logging", **keys}
    return digits(algorithm=algorithm, data__clients=8, data__local_test=0.2, run__evaluate_clients=2)


def peers(**keys: Any) -> Raw:
    algorithm = {"name": "test_own_columns:Gossip", **keys}
    data = {"name": "digits", "clients": 6, "partition": "iid"}
    return digits(algorithm=algorithm, topology="ring", world={}, data=data, run__rounds=4)


def test_they_stand_beside_the_others(simulate: Simulate) -> None:
    result = simulate(server())
    updates = result.pandas("updates")
    assert list(updates.columns[-3:]) == ["drift", "dispatched", "nothing"]
    assert updates["drift"].notna().any()
    assert updates["drift"][updates["status"] != "used"].isna().all()
    assert updates["nothing"].isna().all()
    assert (result.pandas("steps")["size"] > 0).all()
    assert set(result.pandas("coefficients")["angle"]) == {0.0, 0.5}
    assert result.table("updates").schema.field("drift").type == "double"


def test_they_are_there_without_a_server(simulate: Simulate) -> None:
    updates = simulate(peers()).pandas("updates")
    assert (updates["drift"] > 0).all()
    assert (updates["heard"] == 2).all()


def test_reports_and_tables_of_several_runs_have_them(tmp_path: Path) -> None:
    for raw in (server(), digits(data__clients=8)):
        raysim.run(raw, out=tmp_path, inline=True)
    runs = load(tmp_path)
    assert runs.pandas("updates")["drift"].notna().any()
    assert runs.pandas("updates", ["drift", "client"]).shape[1] == 2 + len(runs.varying)
    own = [section for section in SECTIONS if section.name.startswith("own-")]  # drawing all others takes seconds
    pictures = {picture.name for picture in report(runs, sections=own).pictures}
    assert {"own-updates-drift", "own-steps-size", "own-coefficients-angle"} <= pictures
    assert "own-updates-nothing" not in pictures


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (digits(algorithm={"name": "test_own_columns:Wrong", "column": "weight"}), "must name columns that the table"),
        (digits(algorithm={"name": "test_own_columns:Wrong", "value": "a"}), "task.log: x must be one number, or None"),
        (digits(algorithm={"name": "test_own_columns:Wrong", "value": "vector"}), "got a tensor of shape (2,)"),
        (server(where="personal"), "has no row in any table, so task.log must not be called there, got drift"),
        (peers(name_of_mix="drift"), "must be given other names in `mix` than in `local`"),
    ],
)
def test_what_cannot_be_a_column_ends_the_run(raw: Raw, expected: str, tmp_path: Path) -> None:
    with pytest.raises(raysim.RunFailed) as failed:
        raysim.run(raw, out=tmp_path, inline=True)
    assert expected in str(failed.value)


ROW = {"step": 1, "round": 0, "virtual_time": 0.0, "used": 1, "discarded": 0, "in_flight": 0, "samples": 3}


def test_a_digest_depends_on_them_but_not_on_when_rows_are_written(tmp_path: Path) -> None:
    rows: list[dict[str, float | None]] = [{}, {"a": 1.0}, {"a": None, "b": 2.0}, {"b": 3.0}]
    digests = set()
    for number, flushed in enumerate(itertools.product((False, True), repeat=len(rows))):
        writer = Writer(tmp_path / str(number), "run")
        for row, flush in zip(rows, flushed, strict=True):
            writer.add(StepRow(**ROW), row)
            if flush:
                writer.flush()
        digests.add(writer.digest())
        writer.close()
        assert len(list((tmp_path / str(number) / "steps").glob("*.parquet"))) == 1
        again = Writer(tmp_path / str(number), "run", keep={"steps": 3})
        again.add(StepRow(**ROW), rows[3])
        digests.add(again.digest())
    assert len(digests) == 1
    plain = Writer(tmp_path / "plain", "run")
    for _ in rows:
        plain.add(StepRow(**ROW))
    assert plain.digest() not in digests
