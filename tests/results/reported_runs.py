"""Runs made by hand, to be reported."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from results import Writer, write_json
from results.schemas import ROWS

Rows = dict[str, Sequence[dict[str, Any]]]


def made(folder: Path, rows: Rows, scenario: dict[str, Any] | None = None, **info: Any) -> Path:
    """A run's folder with these rows in its tables."""
    writer = Writer(folder, folder.name)
    for table, of_table in rows.items():
        for row in of_table:
            writer.add(ROWS[table](**row))
    writer.close()
    scenario = {"name": "made", "seed": 0, "algorithm": {"name": "fedavg"}, **(scenario or {})}
    about = {"run": folder.name, "name": scenario["name"], "status": "finished", "seed": scenario["seed"]}
    write_json(folder, {**about, "scenario_hash": folder.name, "scenario": scenario, **info})
    return folder


def when(number: int) -> dict[str, Any]:
    return {"step": number, "round": number, "virtual_time": float(number)}


def evaluation(number: int, value: float | None, member: int | None = None, **changes: Any) -> dict[str, Any]:
    subject = "global" if member is None else "peer"
    what = {"subject": subject, "member": member, "split": "test", "metric": "accuracy", "value": value, "samples": 10}
    return when(number) | what | changes


def step(number: int, size: int | None, elapsed: float) -> dict[str, Any]:
    counts = {"used": 1, "discarded": 0, "in_flight": 0, "samples": 10}
    return when(number) | counts | {"up_bytes": size, "down_bytes": size, "elapsed_s": elapsed}


def peers(number: int, rounds: int = 3) -> Rows:
    """What a run of so many peers on a ring writes."""
    edges = [(peer, (peer + 1) % number) for peer in range(number)]
    times = range(rounds)
    of_all = {"accuracy": 0.5, "accuracy_gap": 0.2, "consensus": 0.1}
    together = [evaluation(t, v**t, subject="peers", metric=metric) for t in times for metric, v in of_all.items()]
    own = [evaluation(t, (peer + t) / (number + rounds), peer) for t in times for peer in range(number)]
    messages = [{**when(t), "source": a, "target": b, "bytes": 100 + a} for t in times for a, b in edges]
    return {"evaluations": own + together, "exchanges": messages}
