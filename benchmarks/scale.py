"""Measures what raysim costs as a function of scale, each point in a process of its own, and draws it.

    python benchmarks/scale.py --out docs/images/scale.svg [--only clients peers] [--largest 1e6]

It prints a table of CPU seconds (user and system) and of peak memory, both of a whole process with its imports, and
writes the points as JSON beside the picture, from which `--draw` draws it again.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from ruamel.yaml import YAML

POWERS = (100, 1_000, 10_000, 100_000, 1_000_000)


class Point(NamedTuple):
    """One measurement: a command on a scenario."""

    panel: str  # what is varied
    line: str  # what is done
    x: float
    options: tuple[str, ...]  # of the command line
    scenario: dict[str, Any]


def scenario(clients: int, *, rounds: int = 1, buffer: int = 1, in_flight: int = 1, **more: Any) -> dict[str, Any]:
    """Returns a scenario of FedBuff in virtual seconds. Each client has one sample of eight features."""
    return {
        "name": "scale",
        "data": {"name": "linear_regression", "clients": clients, "samples": clients, "features": 8},
        "model": {"name": "linear"},
        "algorithm": {"name": "fedbuff", "buffer": buffer},
        "local": {"lr": 0.001},
        "world": {
            "dispatch": {"concurrency": in_flight},
            "delay": {"name": "log_normal", "median": 60, "sigma": 1.0, "unit": "seconds"},
        },
        "run": {"rounds": rounds, "evaluate_every": rounds},
        **more,
    }


def peers(number: int) -> dict[str, Any]:
    """Returns a scenario of peers in a ring that do one round."""
    return {
        **scenario(number),
        "algorithm": "decfedavg",
        "topology": {"name": "ring"},
        "world": {"delay": {"name": "none"}},
    }


DRY, HERE = ("run", "--dry"), ("run", "--inline")


def points() -> Iterator[Point]:
    """Yields all points. Those of a line are in order of x."""
    for what, options in (("check", ("check",)), ("dry run", DRY), ("run of one round", HERE)):
        for n in POWERS[1:]:
            yield Point("clients", what, n, options, scenario(n))
    for n in POWERS[2:]:
        yield Point("updates", "dry run", n, DRY, scenario(131_072, rounds=n // 100, buffer=100, in_flight=1000))
    for n in POWERS[:-1]:
        job = scenario(131_072, rounds=1000, buffer=100, in_flight=n)
        yield Point("clients in flight", "dry run, 100,000 updates", n, DRY, job)
    for n in (10**4, 10**5, 10**6, 10**7, 10**8):
        data = {"name": "digits", "clients": 10, "partition": "iid"}
        model = {"name": "mlp", "hidden": [n // 75]}
        job = scenario(10, rounds=2, in_flight=2, data=data, model=model)
        yield Point("parameters", "run of two updates", n, HERE, job)
    for what, options in (("dry run", DRY), ("run of one round", HERE)):
        for n in POWERS[:3]:
            yield Point("peers", what, n, options, peers(n))
    for n in POWERS[:3]:
        mlp = {"name": "mlp", "hidden": [1000]}  # 10,001 parameters, of which SCAFFOLD keeps a vector for each client
        world = {"dispatch": {"per_round": n}}
        job = scenario(n, model=mlp, algorithm={"name": "scaffold"}, world=world)
        yield Point("clients with state", "run of one round", n, HERE, job)
    for n in POWERS[:3]:
        world = {"dispatch": {"per_round": 2}}
        job = scenario(100, rounds=n, algorithm={"name": "fedavg"}, world=world)
        yield Point("rounds", "run of two updates a round", n, HERE, job)


def measure(point: Point) -> dict[str, Any]:
    """Runs the command of a point, and returns what it cost."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "scenario.yaml")
        YAML().dump(point.scenario, file)
        words = [sys.executable, "-m", "raysim", *point.options, str(file)]
        words += ["--out", folder] if point.options[0] == "run" else []
        log = os.open(Path(folder, "log"), os.O_WRONLY | os.O_CREAT)
        redirected = [(os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)]
        child = os.posix_spawn(sys.executable, words, os.environ, file_actions=redirected)
        _, status, used = os.wait4(child, 0)
        if status:
            raise SystemExit(f"{point.panel}, {point.line}, {point.x}: {Path(folder, 'log').read_text()}")
    cost = {"cpu_s": round(used.ru_utime + used.ru_stime, 2), "peak_mb": round(used.ru_maxrss / 1024)}
    return {"panel": point.panel, "line": point.line, "x": point.x, **cost}


def draw(found: list[dict[str, Any]], out: Path) -> None:
    """Draws a panel for each thing that is varied: CPU seconds in full lines, memory in dotted ones."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    panels = [(name, list(rows)) for name, rows in groupby(found, lambda row: row["panel"])]
    columns = min(4, len(panels))
    size = (-(-len(panels) // columns), columns)
    figure, places = pyplot.subplots(*size, figsize=(3.6 * columns, 3.2 * size[0]), squeeze=False)
    for axes, (name, rows) in zip(places.flat, panels, strict=False):
        memory = axes.twinx()
        for colour, (line, of_line) in enumerate(groupby(rows, lambda row: row["line"])):
            x, cpu, mb = zip(*((row["x"], row["cpu_s"], row["peak_mb"]) for row in of_line), strict=True)
            axes.plot(x, cpu, f"C{colour}o-", label=line, markersize=3)
            memory.plot(x, mb, f"C{colour}x:", markersize=4)
        axes.set(xscale="log", yscale="log", xlabel=name, ylim=(0.3, 300))
        memory.set(yscale="log", ylim=(50, 20_000))
        axes.legend(fontsize=7, loc="upper left")
    for row in places:
        row[0].set_ylabel("CPU seconds (full lines)")
    for axes in list(places.flat)[len(panels) :]:
        axes.axis("off")
    figure.suptitle("dotted, and on the right: peak memory in MB", fontsize=9)
    figure.tight_layout()
    figure.savefig(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("scale.svg"))
    parser.add_argument("--only", nargs="*", help="names of panels")
    parser.add_argument("--largest", type=float, default=1e8, help="leave out points beyond this")
    parser.add_argument("--draw", action="store_true", help="draw what was measured before")
    given = parser.parse_args()
    kept = given.out.with_suffix(".json")
    found: list[dict[str, Any]] = json.loads(kept.read_text()) if given.draw else []
    if not given.draw:
        print("| varied | command | | CPU s | peak MB |\n|---|---|---|---|---|")
        for point in points():
            if point.x <= given.largest and (not given.only or point.panel in given.only):
                found.append(measure(point))
                print("| {panel} | {line} | {x:,} | {cpu_s} | {peak_mb:,} |".format(**found[-1]), flush=True)
        kept.write_text(json.dumps(found, indent=1) + "\n")
    draw(found, given.out)


if __name__ == "__main__":
    main()
