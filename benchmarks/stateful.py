"""Measures the memory of a thousand clients that keep state, with the MLP 784-200-200-10.

The state of a client is two vectors in FedADMM-InSa, and one in CA2FL.

    python benchmarks/stateful.py --data FOLDER [--algorithm ca2fl] [--clients 1000] [--store-mb 1000]

It starts a local Ray with two CPUs and an object store of `--store-mb`, which spills what does not fit to disk. It
prints how many clients took part, the peak of the memory that all processes hold together, and how much was spilled.
Memory is the proportional set size, in which shared memory counts once.
"""

import argparse
import tempfile
import threading
import time
from pathlib import Path

import psutil
import ray
from ruamel.yaml import YAML

import raysim

ALGORITHMS = {"fedadmm_insa": "{name: fedadmm_insa, beta: 2.0}", "ca2fl": "{name: ca2fl, buffer: 50}"}
SCENARIO = """
name: stateful
data: {{name: mnist, root: {root}, clients: {clients}, partition: {{name: shards, per_client: 2}}}}
model: {{name: mlp, hidden: [200, 200]}}
algorithm: {algorithm}
local: {{lr: 0.01, epochs: 10, batch_size: null}}
world: {{dispatch: {{per_round: 50}}}}
run: {{rounds: {rounds}, evaluate_every: {rounds}}}
"""


def held_mb(process: psutil.Process) -> float:
    """Returns the memory that a process and its descendants hold together, in MB."""
    total = 0
    for member in [process, *process.children(recursive=True)]:
        try:
            total += member.memory_full_info().pss
        except psutil.Error:  # it has just ended
            continue
    return total / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, metavar="FOLDER", help="holds MNIST/raw")
    parser.add_argument("--algorithm", choices=ALGORITHMS, default="fedadmm_insa")
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--store-mb", type=int, default=1000)
    given = parser.parse_args()
    filled = SCENARIO.format(
        root=given.data, clients=given.clients, rounds=given.rounds, algorithm=ALGORITHMS[given.algorithm]
    )
    raw = YAML(typ="safe").load(filled)
    peak, spilled, stop = [0.0], [0.0], threading.Event()

    def watch() -> None:
        while not stop.wait(0.5):
            peak[0] = max(peak[0], held_mb(psutil.Process()))
            files = Path("/tmp/ray/session_latest").rglob("ray_spilled_objects*/*")
            spilled[0] = max(spilled[0], sum(file.stat().st_size for file in files) / 1e6)

    with tempfile.TemporaryDirectory() as out:
        ray.init(address="local", num_cpus=2, object_store_memory=given.store_mb * 10**6, include_dashboard=False)
        watcher = threading.Thread(target=watch)
        watcher.start()
        started = time.monotonic()
        result = raysim.run(raysim.parse_scenario(raw), out=out)
        seconds = time.monotonic() - started
        stop.set()
        watcher.join()
        clients = result.pandas("updates").client.nunique()
        print(f"{clients} clients, {seconds:.0f} s, peak {peak[0]:.0f} MB, spilled {spilled[0]:.0f} MB")


main()
