"""Runs engines in turn on one job, and prints their seconds per round and their ratios to the first engine.

    python benchmarks/pair.py mlp --root ROOT --pfl PFL/bin/torchrun --repeat 3

ROOT holds FashionMNIST/raw/*.gz; PFL is the environment of pfl-research. The speed of a machine changes with time, so
compare only runs that follow each other: each ratio is within one repetition, and printed is the median of the ratios.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ASYNC = ["--set", "algorithm={name: fedbuff, buffer: %d}", "--set", "world.delay={name: half_normal, sigma: 5}"]
COHORT = {"cnn": 10, "mlp": 50}


def commands(job: str, root: str, torchrun: str | None) -> dict[str, list[str]]:
    """Returns the command of each engine. The others are compared with the first one."""
    raw = str(Path(root) / "FashionMNIST" / "raw")
    python = sys.executable
    pfl = [torchrun or "", "--nproc_per_node", "2", str(HERE / "pfl_job.py"), job, "--root", raw]
    ours = [python, str(HERE / "raysim_job.py"), job, "--root", root]
    asynchronous = [option % COHORT[job] if "%d" in option else option for option in ASYNC]
    return {
        **({"pfl": pfl} if torchrun else {}),
        "raw": [python, str(HERE / "raw_torch.py"), job, "--root", raw, "--processes", "2"],
        "raysim": ours,
        "raysim async": [*ours, *asynchronous],
    }


def measure(command: list[str]) -> dict[str, float]:
    """Runs an engine, and returns its seconds per round. Raises RuntimeError with its output if it prints no result."""
    # By default Ray's workers run with a lower priority (niceness) than the other engines.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "RAY_worker_niceness": "0"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"engine"')]
    if not lines:
        raise RuntimeError(f"{' '.join(command)} printed no result:\n{done.stderr[-2000:]}")
    line = json.loads(lines[-1])
    return {"loop": line["loop_seconds"] / line["rounds"], "median": line["seconds_per_round"]["median"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job", choices=COHORT)
    parser.add_argument("--root", required=True)
    parser.add_argument("--pfl", help="torchrun of pfl-research's environment")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", nargs="*", help="engines; default: all")
    given = parser.parse_args()
    chosen = {k: c for k, c in commands(given.job, given.root, given.pfl).items() if not given.only or k in given.only}
    readings: dict[str, list[float]] = {engine: [] for engine in chosen}
    for _ in range(given.repeat):
        for engine, command in chosen.items():
            reading = measure(command)
            readings[engine].append(reading["loop"])
            print(
                f"{engine:14s} loop {reading['loop']:.4f} s a round, median round {reading['median']:.4f}", flush=True
            )
    base = readings[next(iter(readings))]
    for engine, values in readings.items():
        ratios = [value / other for value, other in zip(values, base, strict=True)]
        print(
            f"{engine:14s} median {statistics.median(values):.4f} s a round, ratio {statistics.median(ratios):.3f}",
            flush=True,
        )


main()
