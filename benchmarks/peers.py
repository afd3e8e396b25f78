"""Measures rounds per second of peers in a graph: in a plain PyTorch loop, in raysim, and in gossipy.

    python benchmarks/peers.py --root ROOT --repeat 3 --gossipy GOSSIPY/bin/python

ROOT holds FashionMNIST/raw/*.gz; GOSSIPY is the environment of gossipy-dfl. raysim runs in one process, in two worker
processes without Ray, and on one and two actors. Engines run in turn, each in a process of its own that does all cases.
Printed last are the medians over repetitions of the times, and of the ratios to the plain loop of the same repetition.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jobs import JOBS, SEED, load, network, normalize

SCENARIO = Path(__file__).with_name("peers.yaml")
GOSSIPY = Path(__file__).with_name("gossipy_job.py")
WORKERS = {"inline": 1, "local 2": 2, "1 actor": 1, "2 actors": 2}
BATCH, LR = 32, 0.1  # as in the scenario


class Case(NamedTuple):
    """A case to be simulated."""

    peers: int
    topology: str  # as in a scenario
    steps: int  # of local training in a round; one step is D-PSGD, with more each peer trains before it mixes
    rounds: int
    warm: int  # number of rounds at the start that do not count

    def overrides(self, actors: int) -> list[str]:
        """Returns the keys to replace in the scenario. An actor gets its peers of a round as one job."""
        return [
            *(f"data.clients={self.peers}", f"topology={self.topology}", f"local.steps={self.steps}"),
            f"algorithm={'d_psgd' if self.steps == 1 else 'decfedavg'}",
            *(f"run.rounds={self.rounds}", f"run.evaluate_every={self.rounds}"),
            *(f"resources.client_actors={actors}", f"resources.chunk={self.peers // actors}"),
        ]


CASES = {
    "ring of 16, 1 step": Case(16, "ring", 1, 100, 20),
    "ring of 16, 10 steps": Case(16, "ring", 10, 15, 3),
    "random graph of 256, 1 step": Case(256, "{name: random, edges: 512}", 1, 8, 2),
}


def shares(case: Case, root: Path) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Returns the images of each peer, (n, 1, 28, 28) float32, and their labels, (n,) int64."""
    images, labels, _, _ = load(root / "FashionMNIST" / "raw")
    rows = np.array_split(np.random.default_rng(SEED).permutation(len(labels)), case.peers)
    return [normalize(images[own]) for own in rows], [labels[own].astype(np.int64) for own in rows]


def raw(case: Case, root: Path) -> float:
    """Runs a case as a plain PyTorch loop, and returns seconds per round.

    Each peer trains, and mixes its own and its neighbours' parameters. It mixes those after the training or, if that is
    one step, those before it, as D-PSGD does.
    """
    import torch

    import raysim

    torch.set_num_threads(1)
    scenario = raysim.load_scenario(SCENARIO, case.overrides(actors=1))
    near = scenario.topology.neighbours(case.peers, scenario.seed)
    x, y = (list(map(torch.from_numpy, of_peers)) for of_peers in shares(case, root))
    models = [network(JOBS["mlp"]) for _ in near]
    optimizers = [torch.optim.SGD(model.parameters(), lr=LR) for model in models]
    generator = np.random.default_rng(SEED)
    laps = []
    for _ in range(case.rounds):
        started = time.perf_counter()
        if case.steps == 1:
            sent = copies(models)
        for model, optimizer, own_x, own_y in zip(models, optimizers, x, y, strict=True):
            for batch in torch.from_numpy(generator.permutation(len(own_y))[: case.steps * BATCH]).split(BATCH):
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(own_x[batch]), own_y[batch]).backward()
                optimizer.step()
        if case.steps > 1:
            sent = copies(models)
        with torch.no_grad():
            for peer, (others, weights, *_) in enumerate(near):
                for number, value in enumerate(models[peer].parameters()):
                    value.add_(sent[peer][number], alpha=-sum(weights))
                    for other, weight in zip(others, weights, strict=True):
                        value.add_(sent[other][number], alpha=weight)
        laps.append(time.perf_counter() - started)
    return statistics.mean(laps[case.warm :])


def copies(models: list[Any]) -> list[list[Any]]:
    """Returns a copy of the parameters of each model."""
    return [[value.detach().clone() for value in model.parameters()] for model in models]


def simulated(case: Case, root: Path, engine: str, overrides: list[str]) -> float:
    """Runs a case in raysim, and returns seconds per round. The last round is evaluated, so it does not count."""
    import raysim

    overrides = [f"data.root={root}", *case.overrides(WORKERS[engine]), *overrides]
    scenario = raysim.load_scenario(SCENARIO, overrides)
    result = raysim.run(scenario, inline=engine == "inline", local=2 if engine == "local 2" else None)
    ends = result.pandas("steps").elapsed_s.to_numpy()[case.warm - 1 : -1]
    return float(ends[-1] - ends[0]) / (len(ends) - 1)


def measure(given: argparse.Namespace, engine: str) -> dict[str, float]:
    """Runs an engine in its own process. Returns seconds per round of each case. Raises RuntimeError if it fails."""
    if engine == "gossipy":
        words = [given.gossipy, str(GOSSIPY), "--root", str(given.root), "--cases", *given.cases]
    else:
        words = [sys.executable, __file__, "--root", str(given.root), "--cases", *given.cases, "--engine", engine]
        words += [word for override in given.overrides for word in ("--set", override)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "RAY_worker_niceness": "0"}
    done = subprocess.run(words, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(f"{engine}:\n{done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def compare(given: argparse.Namespace) -> None:
    """Measures all engines in turn, and prints each reading, then the medians."""
    engines = ["raw", *WORKERS, *(["gossipy"] if given.gossipy else [])]
    readings: list[dict[str, dict[str, float]]] = []
    for _ in range(given.repeat):
        readings.append({})
        for engine in engines:
            readings[-1][engine] = found = measure(given, engine)
            shown = [f"{case}: {1000 * seconds:.1f} ms" for case, seconds in found.items()]
            print(f"{engine:9s} {', '.join(shown)}", flush=True)
    for case in given.cases:
        print(f"\n{case:29s} ms a round  rounds/s  ratio to raw")
        for engine in engines:
            seconds = statistics.median(reading[engine][case] for reading in readings)
            ratio = statistics.median(reading[engine][case] / reading["raw"][case] for reading in readings)
            print(f"  {engine:27s} {1000 * seconds:10.1f}  {1 / seconds:8.1f}  {ratio:12.2f}")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--root", type=Path, required=True)
    arguments.add_argument("--repeat", type=int, default=3)
    arguments.add_argument("--gossipy", help="Python of an environment with gossipy-dfl; default: it is left out")
    arguments.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    arguments.add_argument("--set", action="append", default=[], metavar="KEY.PATH=VALUE", dest="overrides")
    arguments.add_argument("--engine", choices=["raw", *WORKERS], help="this one only, in this process")
    given = arguments.parse_args()
    if given.gossipy and shutil.which(given.gossipy) is None:
        arguments.error(f"--gossipy: must be a Python that can be run, got {given.gossipy!r}")
    cases = {name: CASES[name] for name in given.cases}
    if given.engine == "raw":
        print(json.dumps({name: raw(case, given.root) for name, case in cases.items()}))
    elif given.engine:
        found = {name: simulated(case, given.root, given.engine, given.overrides) for name, case in cases.items()}
        print(json.dumps(found))
    else:
        compare(given)


if __name__ == "__main__":
    main()
