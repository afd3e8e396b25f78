"""Measures what a run costs that starts a Ray of its own, until its first round, beside a bare Ray.

    python benchmarks/startup.py --before CHECKOUT --repeat 3

In turn, it runs one round of the quickstart with the code in another checkout and with that beside this file, and a
script that starts Ray and three actors that import torch. It prints the seconds until the first round, or until the
actors have answered, and the CPU seconds of all processes that had a part in it, by kind, until the command ended.
`chrt -f 5 python benchmarks/startup.py` lets nothing else on the machine take part.
"""

import argparse
import ctypes
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[1]
ADOPTS = 36  # PR_SET_CHILD_SUBREAPER: processes whose parent ends become ours
BARE = """
import ray
ray.init(address="local", num_cpus=2, log_to_driver=False)
@ray.remote(num_cpus=0)
class Actor:
    def load(self):
        import torch
ray.get([actor.load.remote() for actor in [Actor.remote() for _ in range(3)]])
print("round 1 of 1", flush=True)
"""
KINDS = {"gcs_server": "Ray", "raylet": "Ray", "dashboard": "Ray", "Agent": "Ray", "log_monitor": "Ray", "agent": "Ray"}
KINDS |= {"monitor.py": "Ray", "forkserver": "Ray", "resource_tracker": "Ray", "Client": "client actors"}
KINDS |= {"Aggregator": "aggregator", "Scheduler": "scheduler", "Loader": "loader", "ray::Actor": "bare actors"}


class Tree(threading.Thread):
    """Follows the CPU seconds of all processes that this one has started, and that these have."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.seconds: dict[int, float] = {}
        self.kinds: dict[int, str] = {}
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.1):
            self.look()

    def look(self) -> None:
        parents: dict[int, int] = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                stat = (folder / "stat").read_text().rpartition(")")[2].split()
                line = (folder / "cmdline").read_text().replace("\0", " ")
            except OSError:  # it has ended
                continue
            pid, parents[pid] = int(folder.name), int(stat[1])
            self.seconds[pid] = (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")
            found = next((kind for word, kind in KINDS.items() if word in line), None)
            if found and "default_worker" not in line:  # which names Ray's processes, and is not what it will be
                self.kinds[pid] = found
        for pid in list(self.seconds):
            if pid in parents and not self.is_ours(pid, parents):
                del self.seconds[pid]

    def is_ours(self, pid: int, parents: dict[int, int]) -> bool:
        while pid in parents:
            pid = parents[pid]
            if pid == os.getpid():
                return True
        return False


def measure(command: list[str], code: Path) -> tuple[float, Counter[str]]:
    """Returns the seconds to the first round, and CPU seconds by kind of process."""
    began, first, tree = time.perf_counter(), 0.0, Tree()
    tree.start()
    env = {**os.environ, "PYTHONPATH": str(code), "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1"}
    given = {"env": env, "cwd": code, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, **given) as process:
        for line in process.stdout or ():
            if "round 1 of" in line:
                first = first or time.perf_counter() - began
    with suppress(ChildProcessError):
        while True:
            os.wait()  # for what it has left behind
    tree.over.set()
    tree.join()
    used: Counter[str] = Counter()
    for pid, seconds in tree.seconds.items():
        used["command" if pid == process.pid else tree.kinds.get(pid, "others")] += seconds
    return first, used


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="another checkout of raysim")
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    ctypes.CDLL(None).prctl(ADOPTS, 1, 0, 0, 0)
    run = [sys.executable, "-m", "raysim", "run", str(ROOT / "scenarios/quickstart.yaml"), "--set", "run.rounds=1"]
    run += ["--out", tempfile.mkdtemp()]
    jobs = {"before": (run, given.before)} if given.before else {}
    jobs |= {"raysim": (run, ROOT), "bare": ([sys.executable, "-c", BARE], ROOT)}
    found = [{name: measure(*job) for name, job in jobs.items()} for _ in range(given.repeat)]
    print("| | first round, s | CPU s | of which |\n|---|--:|--:|---|")
    for name in jobs:
        seconds = sorted(pair[name][0] for pair in found)
        used = Counter({kind: statistics.median(pair[name][1][kind] for pair in found) for kind in found[0][name][1]})
        parts = ", ".join(f"{kind} {cpu:.1f}" for kind, cpu in used.most_common())
        span = f"{statistics.median(seconds):.2f} ({seconds[0]:.2f} to {seconds[-1]:.2f})"
        print(f"| {name} | {span} | {sum(used.values()):.1f} | {parts} |")
