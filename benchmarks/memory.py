"""Measures the memory of this process and of each actor over a long run, as a table and a picture.

    python benchmarks/memory.py --rounds 1000 --out memory.png

Memory is resident memory without shared memory, because every process that reads the object store maps it.
"""

import argparse
import re
import threading
import time
from pathlib import Path

import psutil

import raysim

SCENARIO = Path(__file__).parents[1] / "scenarios" / "quickstart.yaml"


def private_mb(process: psutil.Process) -> float:
    """Returns the memory in MB that a process shares with no other."""
    memory = process.memory_info()
    return (memory.rss - memory.shared) / 1e6


def watch(readings: dict[str, list[tuple[float, float]]], stop: threading.Event) -> None:
    """Reads, every second, the memory of this process and of the actors, which Ray names in their command lines."""
    started, me, names = time.monotonic(), psutil.Process(), {}
    while not stop.wait(1.0):
        for process in [me, *me.children(recursive=True)]:
            try:
                actor = re.search(r"ray::(?:\S*/)?(scheduler|[a-z]+-\d+)", " ".join(process.cmdline()).lower())
                name = names.get(process.pid) or ("driver" if process == me else actor and actor[1])
                if name:
                    names[process.pid] = name
                    readings.setdefault(name, []).append((time.monotonic() - started, private_mb(process)))
            except psutil.Error:  # it has just ended
                continue


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--scenario", default=str(SCENARIO))
    parser.add_argument("--out", default="memory.png")
    given = parser.parse_args()
    scenario = raysim.load_scenario(given.scenario, [f"run.rounds={given.rounds}"])
    readings: dict[str, list[tuple[float, float]]] = {}
    stop = threading.Event()
    watcher = threading.Thread(target=watch, args=(readings, stop), daemon=True)
    watcher.start()
    raysim.run(scenario)
    stop.set()
    watcher.join()
    draw({name: series for name, series in readings.items() if len(series) > 10}, given.out)


def draw(readings: dict[str, list[tuple[float, float]]], out: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4))
    print(f"{'process':32s} {'MB at 1/4':>10s} {'at 1/2':>8s} {'at end':>8s}")
    for name, series in sorted(readings.items()):
        times, values = zip(*series, strict=True)
        axes.plot(times, values, label=name)
        quarter, half = values[len(values) // 4], values[len(values) // 2]
        print(f"{name:32s} {quarter:10.1f} {half:8.1f} {values[-1]:8.1f}")
    axes.set(xlabel="seconds", ylabel="private memory, MB", ylim=(0, None))
    axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(out, dpi=120)


main()
