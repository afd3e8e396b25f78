"""A row for each client of each run, joined from the tables."""

import math
from pathlib import Path
from typing import Any

from reported_runs import evaluation, made
from table_rows import update

from results import load


def holds(client: int, **samples: int) -> list[dict[str, Any]]:
    return [{"client": client, "split": "train", "label": int(key[1:]), "samples": n} for key, n in samples.items()]


def test_what_a_client_holds_and_did(tmp_path: Path) -> None:
    partition = [*holds(0, l0=3, l1=2), *holds(1, l1=4), {"client": 0, "split": "test", "label": 0, "samples": 9}]
    ends = ((1.0, "used"), (3.0, "used"), (9.0, "discarded"))
    updates = [update(n, client=0, staleness=s, status=status) for n, (s, status) in enumerate(ends)]
    own = [evaluation(number, value, 0, subject="client") for number, value in ((0, 0.1), (2, 0.5))]
    rows = {"partition": partition, "updates": updates, "evaluations": [*own, evaluation(2, 0.9)]}
    made(tmp_path / "a", rows)
    made(tmp_path / "b", {"partition": holds(0, l0=1)}, {"algorithm": {"name": "other"}})
    table = load(tmp_path).clients(keys=["algorithm"])
    assert list(table) == [
        *("run", "algorithm.name", "client"),
        *("samples", "labels", "picked", "used", "staleness", "accuracy"),
    ]
    first, second, third = table.itertuples(index=False, name=None)
    assert first == ("a", "fedavg", 0, 5, 2, 3, 2, 2.0, 0.5)
    assert second[:7] == ("a", "fedavg", 1, 4, 1, 0, 0)
    assert all(map(math.isnan, second[7:]))
    assert third[:7] == ("b", "other", 0, 1, 1, 0, 0)
