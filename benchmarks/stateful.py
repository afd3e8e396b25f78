"""Measures what algorithms cost whose clients keep states, on Ray, in turns, with a thousand clients.

    python benchmarks/stateful.py --data DATA [--job small] [--algorithms fedbuff ca2fl] [--repeat 3] [--store-mb 1000]

`large` is a ResNet-18 (11 million parameters) on CIFAR-10 with 200 updates in buffers of 50, 100 clients in flight, and
the files that Hugging Face publishes in DATA/cifar10-jpeg; `small` is the MLP 784-200-200-10 with 40 rounds of 50
clients, and MNIST's files in DATA/MNIST/raw. A client's state is two vectors in FedADMM-InSa, and one in CA2FL.

Each run has a process and a Ray of its own with two CPUs and an object store of `--store-mb` (by default 30 % of the
memory), which spills to disk what does not fit. Printed are the seconds of its loop, how many clients took part,
what their states take, and the peaks of the aggregator's memory, of that of all processes, and of the spilled files.
Memory is the proportional set size, in which shared memory counts once; the aggregator's is without shared memory.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import psutil
import ray
from ruamel.yaml import YAML

import raysim

ALGORITHMS = {
    "fedbuff": "{name: fedbuff, buffer: 50}",
    "ca2fl": "{name: ca2fl, buffer: 50}",
    "fedadmm_insa": "{name: fedadmm_insa, beta: 2.0}",
}
CIFAR = ", ".join(f"{split}: [{{root}}/cifar10-jpeg/{split}-00000-of-00001.parquet]" for split in ("train", "test"))
JOBS = {
    "large": """
name: large
data: {{name: parquet, CIFAR, image: img, label: label, clients: 1000, partition: iid}}
model: {{name: torchvision, model: resnet18}}
algorithm: {algorithm}
local: {{lr: 0.05, epochs: 1, batch_size: 50}}
world: {{dispatch: {{concurrency: 100}}, delay: {{name: half_normal, sigma: 5, unit: seconds}}}}
run: {{rounds: 4, evaluate_every: 4}}
resources: {{client_actors: 2, chunk: 5}}
""".replace("CIFAR", CIFAR),
    "small": """
name: small
data: {{name: mnist, root: {root}, clients: 1000, partition: {{name: shards, per_client: 2}}}}
model: {{name: mlp, hidden: [200, 200]}}
algorithm: {algorithm}
local: {{lr: 0.01, epochs: 10, batch_size: null}}
world: {{dispatch: {{per_round: 50}}}}
run: {{rounds: 40, evaluate_every: 40}}
resources: {{client_actors: 2}}
""",
}
STATES = {"fedbuff": 0, "ca2fl": 1, "fedadmm_insa": 2}  # vectors of a client's state


class Watch(threading.Thread):
    """Takes the peaks of memory and of spilled files while a run goes on, in MB."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.stop = threading.Event()
        self.all = self.aggregator = self.spilled = 0.0

    def run(self) -> None:
        me = psutil.Process()
        while not self.stop.wait(0.5):
            together = 0
            for process in [me, *me.children(recursive=True)]:
                try:
                    used, title = process.memory_full_info(), " ".join(process.cmdline())
                except psutil.Error:  # it has just ended
                    continue
                together += used.pss
                if "aggregator" in title.lower():
                    self.aggregator = max(self.aggregator, (used.rss - used.shared) / 1e6)
            self.all = max(self.all, together / 1e6)
            files = [*Path("/tmp/ray/session_latest").glob("ray_spilled_objects*/*")]
            self.spilled = max(self.spilled, sum(file.stat().st_size for file in files if file.exists()) / 1e6)


def one(job: str, algorithm: str, data: str, store_mb: int) -> dict[str, Any]:
    """Runs a job with an algorithm in this process, and returns what it took."""
    filled = JOBS[job].format(root=data, algorithm=ALGORITHMS[algorithm])
    scenario = raysim.parse_scenario(YAML(typ="safe").load(filled))
    store = {"object_store_memory": store_mb * 10**6} if store_mb else {}
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, **store)
    watch = Watch()
    watch.start()
    with tempfile.TemporaryDirectory() as out:
        result = raysim.run(scenario, out=out, progress=False)
        watch.stop.set()
        watch.join()
        updates = result.pandas("updates")
        clients = updates[updates.status == "used"].client.nunique()
        parameters = result.info["parameters"]
    return {
        "algorithm": algorithm,
        "loop_s": round(result.info["seconds"]["loop"], 1),
        "clients": clients,
        "states_mb": round(clients * STATES[algorithm] * parameters * 4 / 1e6),
        "aggregator_mb": round(watch.aggregator),
        "all_mb": round(watch.all),
        "spilled_mb": round(watch.spilled),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--job", choices=JOBS, default="large")
    parser.add_argument("--algorithms", nargs="+", choices=ALGORITHMS, default=["fedbuff", "ca2fl"])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--store-mb", type=int, default=0)
    parser.add_argument("--here", action="store_true", help="one run, in this process, printed as JSON")
    given = parser.parse_args()
    if given.here:
        return print(json.dumps(one(given.job, given.algorithms[0], given.data, given.store_mb)))
    words = [sys.executable, __file__, "--here", "--data", given.data, "--job", given.job]
    words += ["--store-mb", str(given.store_mb), "--algorithms"]
    ratios: dict[str, list[float]] = {}
    for _ in range(given.repeat):
        seconds = {}
        for algorithm in given.algorithms:
            done = subprocess.run([*words, algorithm], stdout=subprocess.PIPE, text=True, check=True)
            found = json.loads(done.stdout.splitlines()[-1])
            seconds[algorithm] = found["loop_s"]
            print(", ".join(f"{key} {value}" for key, value in found.items()), flush=True)
        for algorithm, taken in seconds.items():
            ratios.setdefault(algorithm, []).append(taken / seconds[given.algorithms[0]])
    for algorithm, of_it in ratios.items():
        low, middle, high = min(of_it), statistics.median(of_it), max(of_it)
        print(f"{algorithm}: {middle:.2f} ({low:.2f} to {high:.2f}) of {given.algorithms[0]}'s time")


main()
