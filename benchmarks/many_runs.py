"""Measures how long a thousand runs take to read: writes them into a folder, then times `raysim.load`.

python benchmarks/many_runs.py [runs]
"""

import sys
import tempfile
import time
from pathlib import Path

import pyarrow.compute as pc

import raysim
from results import Writer, write_json
from results.rows import EvaluationRow, UpdateRow


def write(folder: Path, seed: int) -> None:
    """Writes a run with 20 evaluations and 2000 updates, and with a real scenario."""
    scenario = raysim.load_scenario(Path(__file__).parents[1] / "scenarios" / "quickstart.yaml", [f"seed={seed}"])
    writer = Writer(folder, folder.name)
    for number in range(1, 21):
        when = {"step": number, "round": number, "virtual_time": float(number)}
        what = {"subject": "global", "split": "test", "metric": "accuracy", "value": 0.5, "samples": 10}
        writer.add(EvaluationRow(**when, **what))
    for number in range(2000):
        when = {"step": number, "round": number, "virtual_time": 0.0, "client": number % 100, "dispatch": number}
        what = {"status": "used", "dispatched_at": 0.0, "version": 0, "staleness": 0.0, "samples": 10}
        writer.add(UpdateRow(**when, **what))
    writer.close()
    info = {"run": folder.name, "name": "n", "status": "finished", "seed": seed, "scenario": scenario.resolved()}
    write_json(folder, info)


def main(runs: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for seed in range(runs):
            write(root / f"run-{seed}", seed)
        raysim.load(root / "run-0").table("evaluations")  # so that libraries are loaded before
        for what, columns, filter in (
            ("evaluations", ["round", "value"], pc.field("metric") == "accuracy"),
            ("updates", ["client", "staleness"], pc.field("status") == "used"),
        ):
            started = time.perf_counter()
            rows = raysim.load(root).table(what, columns, filter, ["algorithm", "seed"]).num_rows
            print(f"{runs} runs, {rows} rows of {what}: {time.perf_counter() - started:.2f} s")


main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
