"""Measures what runs that follow each other cost on Ray: how long they take, and what is left in their actors.

python benchmarks/warm_actors.py --runs 50
python benchmarks/warm_actors.py --before CHECKOUT --repeat 3

The first runs one scenario again and again, and prints for each run: seconds to the first progress and in all; memory
and open files of its actors and of this process; bytes in Ray's object store. The second times a sweep of twelve small
runs as a command, with the code in another checkout of raysim and with that beside this file, in turn.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
SMALL = ["run.rounds=50"]


def usage(pid: int) -> tuple[float, int]:
    """Returns the MB of memory that a process has of its own, and the number of its open files."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    kilobytes = sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))
    return kilobytes / 1000, len(list(Path(f"/proc/{pid}/fd").iterdir()))


def repeat(runs: int, out: Path) -> None:
    """Runs the quickstart with few rounds again and again, and prints what each run took and left."""
    import ray

    import raysim

    scenario = raysim.load_scenario(ROOT / "scenarios" / "quickstart.yaml", SMALL)
    started: list[int] = []
    print("| run | first s | all s | what | MB | files |\n|--:|--:|--:|---|--:|--:|")
    for number in range(runs):
        told = [time.perf_counter()]
        result = raysim.run(scenario, out=out, observers=[lambda _, told=told: told.append(time.perf_counter())])
        first, seconds = told[1] - told[0], time.perf_counter() - told[0]
        if not started:
            named = [actor["name"] for actor in ray.util.list_named_actors(all_namespaces=True)]
            handles = [ray.get_actor(name, namespace="raysim") for name in named]
            started = ray.get([handle.__ray_call__.remote(lambda self: os.getpid()) for handle in handles])
            what = [name.rpartition("/")[2] for name in named]
        lines = dict(zip([*what, "driver"], map(usage, [*started, os.getpid()]), strict=True))
        total = ray.cluster_resources().get("object_store_memory", 0.0)
        stored = total - ray.available_resources().get("object_store_memory", 0.0)
        print(f"| {number + 1} | {first:.2f} | {seconds:.2f} | object store | {stored / 1e6:.1f} | |")
        for name, (memory, files) in lines.items():
            print(f"| {number + 1} | | | {name} | {memory:.1f} | {files} |", flush=True)
        assert result.info["status"] == "finished"


def sweep(code: Path, out: Path) -> float:
    """Returns the seconds that a sweep of twelve small runs takes as a command, with the code in a checkout."""
    command = ["-m", "raysim", "sweep", str(ROOT / "scenarios" / "quickstart.yaml"), "--out", str(out)]
    values = [*SMALL, "seed=0,1,2,3,4,5", "local.lr=0.05,0.1"]
    line = [sys.executable, *command, *(part for value in values for part in ("--set", value))]
    environment = {**os.environ, "PYTHONPATH": str(code)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    began = time.perf_counter()
    subprocess.run(line, check=True, env=environment, cwd=code, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - began


def compare(before: Path, times: int, out: Path) -> None:
    """Times the sweep with both checkouts in turn, and prints each pair."""
    ratios = []
    for number in range(times):
        then, now = (sweep(code, out / f"{number}-{name}") for name, code in (("before", before), ("now", ROOT)))
        ratios.append(then / now)
        print(f"before {then:.1f} s, now {now:.1f} s: {then / now:.2f} times as fast", flush=True)
    print(f"median {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as out:
        if given.before:
            compare(given.before.resolve(), given.repeat, Path(out))
        else:
            repeat(given.runs, Path(out))


if __name__ == "__main__":
    main()
