"""Runs made by hand, to be compared."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from command_line import command
from typer.testing import Result as Answer

from results import Writer, write_json
from results.rows import EvaluationRow, StepRow, UpdateRow
from results.schemas import PartitionRow

Scenario = dict[str, Any]
FEDAVG: Scenario = {"algorithm": {"name": "fedavg", "weights": "samples"}}
FEDBUFF: Scenario = {"algorithm": {"name": "fedbuff", "buffer": 10}}


def made(
    folder: Path,
    scenario: Scenario,
    accuracies: Sequence[float],
    *,
    losses: Sequence[float] = (),
    clients: Sequence[Sequence[float]] = (),
    held: Sequence[tuple[int, str, int, int]] = (),
    **info: Any,
) -> Path:
    """A run's folder: an evaluation each two rounds, a step of 100 bytes up and 200 down each round.

    clients: in each evaluation, the accuracies of clients' own models. held: client, split, label and samples.
    """
    scenario = {"seed": 0, **scenario}
    writer = Writer(folder, folder.name)
    for number in range(2 * len(accuracies)):
        when = {"step": number + 1, "round": number, "virtual_time": number + 1.5}
        counts = {"used": 2, "discarded": 0, "in_flight": 3, "samples": 20}
        writer.add(StepRow(**when, **counts, up_bytes=100, down_bytes=200))
        ended = {"client": 0, "dispatch": number, "status": "used", "dispatched_at": 0.0, "version": 0}
        writer.add(UpdateRow(**when, **ended, staleness=0.0, samples=20, local_steps=7))
        if number % 2:
            rows = [("global", None, "accuracy", accuracies[number // 2])]
            rows += [("global", None, "loss", loss) for loss in losses[number // 2 : number // 2 + 1]]
            own = clients[number // 2] if clients else ()
            rows += [("client", member, "accuracy", value) for member, value in enumerate(own)]
            for subject, member, metric, value in rows:
                what = {"subject": subject, "member": member, "metric": metric, "value": value}
                writer.add(EvaluationRow(**when, **what, split="test", samples=10 * (1 + (member or 0))))
    for client, part, label, samples in held:
        writer.add(PartitionRow(client=client, split=part, label=label, samples=samples))
    writer.close()
    about = {"run": folder.name, "name": "n", "status": "finished", "seed": scenario["seed"], "seconds": {"total": 8.0}}
    write_json(folder, {**about, "scenario": scenario, **info})
    return folder


def compare(*arguments: object) -> Answer:
    return command("compare", *arguments)


def refused(*arguments: object) -> str:
    """The message on stderr."""
    answer = compare(*arguments)
    assert (answer.exit_code, answer.stdout) == (2, "")
    return answer.stderr


def cells(*arguments: object) -> list[dict[str, str]]:
    """The rows of the CSV, as text."""
    answer = compare(*arguments, "--format", "csv")
    assert answer.exit_code == 0, answer.output
    return list(csv.DictReader(io.StringIO(answer.stdout)))


def several(folder: Path) -> Path:
    """Two algorithms with two delays, two seeds each, and accuracies that end with round numbers."""
    last = {("fedavg", 5): (0.8, 0.9), ("fedavg", 20): (0.5, 0.6), ("fedbuff", 5): (0.7, 0.8)}
    for (algorithm, sigma), ends in last.items():
        for seed, end in enumerate(ends):
            part = FEDAVG if algorithm == "fedavg" else FEDBUFF
            scenario = {"seed": seed, **part, "world": {"delay": {"name": "half_normal", "sigma": sigma}}}
            made(folder / f"{algorithm}-{sigma}-{seed}", scenario, [0.1, end], losses=[2.0, 1.0 - end])
    return folder
