"""What must not change when the code does: final models and tables of runs of all kinds, bit for bit.

`digests.json` holds a digest for each run, and the PyTorch and instruction set that gave them. Another PyTorch or CPU
may round differently; there, the test is skipped. `python tests/engine/test_digests.py --check` names each run with
another digest. After a change that is meant to move digests, such as a new column of a table, the command without
--check writes the file anew, and CHANGELOG says whose digests moved.
"""

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[2])]

import raysim
from raysim.scenario import Scenario
from raysim.sweep import load_sweep

SCENARIOS = Path(__file__).parents[2] / "scenarios"
FILE = Path(__file__).parent / "digests.json"
SHORT = ["run.rounds=3", "run.evaluate_every=1"]
FAMILIES = [
    f"algorithms/{name}" for name in ("asynchronous", "capacity", "peers", "personalised", "server_data", "synchronous")
]
ALONE = ["quickstart", "by_hand", "compute", "concurrency", "fedasync", "fedavg_deadline", "peers", "lora"]
OTHERS: dict[str, list[str]] = {  # over scenarios/quickstart.yaml
    "groups": [
        "clients=[{name: slow, share: 0.5, local: {lr: 0.05, epochs: 2}},"
        " {name: bad, share: 0.1, behaviour: sign_flip}]"
    ],
    "schedules": ["local.lr={name: cosine, start: 0.1, end: 0.01, length: 3}"],
    "kept_optimizer": ["local.optimizer={name: sgd, momentum: 0.9, keep: true}"],
    "adam_clipped": ["local.optimizer=adam", "local.lr=0.001", "local.gradients=[{name: clip_norm, max: 1.0}]"],
    "rules": ["algorithm={name: fedadam}"],
    "median": ["algorithm={name: fedavg, aggregate: median}"],
    "budget": ["run.until={updates: 17}"],
}


def chosen() -> Iterator[tuple[str, Scenario]]:
    """Yields each run's name and its scenario, of few rounds."""
    for name in (*ALONE, *FAMILIES, "algorithms/low_rank", "fedf_admm/digits"):
        rounds = ["run.rounds=40", "run.evaluate_every=10"] if name == "quickstart" else SHORT
        sweep = load_sweep(SCENARIOS / f"{name}.yaml", rounds)
        for scenario, case in zip(sweep.scenarios(), range(10_000), strict=False):
            yield f"{name}-{case}-{scenario.algorithm.name}", scenario
    for name, overrides in OTHERS.items():
        yield name, raysim.load_scenario(SCENARIOS / "quickstart.yaml", [*SHORT, *overrides])


def where() -> dict[str, Any]:
    """Returns what the bits depend on beside the scenario."""
    import torch

    return {"torch": torch.__version__.partition("+")[0], "cpu": torch.backends.cpu.get_cpu_capability()}


KNOWN = json.loads(FILE.read_text()) if FILE.exists() else {"where": {}, "digests": {}}


@pytest.mark.slow
def test_digests_are_those_of_before(tmp_path: Path) -> None:
    if where() != KNOWN["where"]:
        pytest.skip(f"the digests are those of {KNOWN['where']}")
    found = {name: raysim.run(it, out=tmp_path, inline=True).digest for name, it in chosen()}
    assert found == KNOWN["digests"]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        found = {name: raysim.run(it, out=folder, inline=True, progress=False).digest for name, it in chosen()}
    if "--check" not in sys.argv:
        FILE.write_text(json.dumps({"where": where(), "digests": found}, indent=1) + "\n")
    others = [name for name in {**found, **KNOWN["digests"]} if found.get(name) != KNOWN["digests"].get(name)]
    print(f"{len(found)} runs, {len(others)} with another digest: {', '.join(others)}")
    sys.exit("--check" in sys.argv and bool(others))
