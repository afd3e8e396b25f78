"""Runs engines in turn on one job, and prints a table of their speeds as Markdown.

    python benchmarks/pair.py mlp --root ROOT --pfl PFL/bin/torchrun --flower FLOWER/bin/python --flgo FLGO/bin/python

ROOT holds FashionMNIST/raw/*.gz; PFL, FLOWER and FLGO are the environments of the other engines, which are left out if
they are not given. The speed of a machine changes with time, so compare only runs that follow each other: each ratio is
within one repetition, and printed is the median of the ratios. README.md beside this file says what each engine does.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from jobs import JOBS

HERE = Path(__file__).parent
Line = dict[str, Any]  # what an engine prints


def commands(given: argparse.Namespace) -> dict[str, list[str]]:
    """Returns the command of each engine. Those with "async" in their names run FedBuff, the others FedAvg."""
    cohort = JOBS[given.job].cohort
    common = [given.job, *(["--rounds", str(given.rounds)] if given.rounds else []), "--root"]
    root, raw = [*common, given.root], [*common, str(Path(given.root) / "FashionMNIST" / "raw")]
    ours = [sys.executable, str(HERE / "raysim_job.py"), *root]
    fedbuff = [
        *("--set", f"algorithm={{name: fedbuff, buffer: {cohort}}}"),
        *("--set", f"world.dispatch={{concurrency: {cohort}}}"),
        *("--set", "world.delay={name: half_normal, sigma: 5, unit: seconds}"),
    ]
    found = {"raw": [sys.executable, str(HERE / "raw_torch.py"), *raw, "--processes", "2"]}
    if given.pfl:
        found["pfl"] = [given.pfl, "--nproc_per_node", "2", str(HERE / "pfl_job.py"), *raw]
    if given.flower:
        found["flower"] = [given.flower, str(HERE / "flower_job.py"), *raw]
        found["flower few"] = [*found["flower"], "--few-nodes"]
    if given.flgo:
        found["flgo"] = [given.flgo, str(HERE / "flgo_job.py"), *raw]
        found["flgo threads"] = [*found["flgo"], "--threads", "2"]
    found |= {"raysim": ours, "raysim inline": [*ours, "--inline"], "raysim local": [*ours, "--local", "2"]}
    if given.flgo:
        found["flgo async"] = [*found["flgo"], "--asynchronous"]
    return found | {"raysim async": [*ours, *fedbuff], "raysim async inline": [*ours, "--inline", *fedbuff]}


def measure(command: list[str]) -> Line:
    """Runs an engine, and returns the line that it prints. Raises RuntimeError with its output if it prints none."""
    # By default Ray's workers run with a lower priority (niceness) than the other engines.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "RAY_worker_niceness": "0", "FLWR_TELEMETRY_ENABLED": "0"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"engine"')]
    if not lines:
        raise RuntimeError(f"{' '.join(command)} printed no result:\n{done.stderr[-2000:]}")
    found: Line = json.loads(lines[-1])
    return found


def row(engine: str, readings: dict[str, list[Line]]) -> str:
    """Returns an engine's row of the table, with medians of its readings."""
    rates = [line["updates_per_second"] for line in readings[engine]]
    seconds = statistics.median(line["loop_seconds"] / line["rounds"] for line in readings[engine])
    ratio = "|"
    base = "raysim async" if "async" in engine else "raysim"
    if base in readings:
        ratios = [line["updates_per_second"] / own for line, own in zip(readings[base], rates, strict=True)]
        ratio = f"| {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
    accuracy = statistics.median(line["accuracy"] for line in readings[engine])
    first = readings[engine][0]
    versions = ", ".join(" ".join(pair) for pair in first["versions"].items())
    cells = (
        f"{first['processes']} | {seconds:.4f} | {statistics.median(rates):.1f} {ratio} | {accuracy:.3f} | {versions}"
    )
    return f"| {engine} | {cells} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job", choices=JOBS)
    parser.add_argument("--root", required=True)
    parser.add_argument("--pfl", help="torchrun of pfl-research's environment")
    parser.add_argument("--flower", help="Python of Flower's environment")
    parser.add_argument("--flgo", help="Python of FLGo's environment")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--rounds", type=int, help="of every engine, a multiple of 10; default: the job's own")
    parser.add_argument("--only", nargs="*", help="engines; default: all")
    given = parser.parse_args()
    chosen = {engine: words for engine, words in commands(given).items() if not given.only or engine in given.only}
    readings: dict[str, list[Line]] = {engine: [] for engine in chosen}
    for _ in range(given.repeat):
        for engine, command in chosen.items():
            readings[engine].append(measure(command))
            print(f"{engine:20s} {json.dumps(readings[engine][-1])}", flush=True)
    rounds = next(iter(readings.values()))[0]["rounds"]
    print(f"\n`{given.job}`, {rounds} rounds, {given.repeat} repetitions\n")
    print("| Engine | Processes | Seconds a round | Updates a second | Time, raysim = 1 | Accuracy | Versions |")
    print("|---|---|---|---|---|---|---|")
    print("\n".join(row(engine, readings) for engine in readings), flush=True)


main()
