"""Memory and time of a client's update, for each run of a scenario file, which may be a sweep over methods and models.

    python benchmarks/personal_memory.py scenarios/fedeq/cifar10.yaml --set data.root=FOLDER [--gpu]

Each update is measured in a process of its own: the peak while it trains over what was held before, and what the client
keeps and sends. On the CPU that is resident memory, on a GPU what torch allocates. The client with most samples takes
ten steps of the scenario's batch size for its shared part, and whole epochs of others. Linux only.
"""

import argparse
import ctypes
import gc
import multiprocessing
import time
from pathlib import Path
from typing import NamedTuple

from raysim import Scenario
from raysim.sweep import load_sweep

MB = 2**20


class Reading(NamedTuple):
    """Of an update, in MB where nothing else is said."""

    parameters: float
    peak: float
    kept: float
    sent: float
    seconds: float  # that it took


def resident_mb(key: str) -> float:
    """VmRSS, what is resident now, or VmHWM, its peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key)) / 1024


def measure(scenario: Scenario, gpu: bool) -> Reading:
    import pyarrow
    import torch

    from actors import Value
    from raysim.data import federate
    from raysim.workers import records
    from raysim.workers.workbench import LOGGED
    from raysim.workers.workshop import BecomeServer, Workshop

    federation = federate(scenario.data, scenario.server_data, scenario.seed, scenario.public)
    worker = BecomeServer(Value(federation)).build(Workshop(scenario, 1.0 if gpu else 0.0))
    client = int(federation.samples.argmax())
    message = worker.message(worker.first_state())
    state = worker.algorithm.client(worker.start)
    task = worker.client_task(client, 0, message)
    # What libraries set aside when they are first used is not the update's: a step of two samples uses them.
    task.train(task.received, steps=1, batch_size=2)
    task.local = scenario.local.model_copy(update={"steps": 10})
    gc.collect()
    # What was freed but is still the process's, after decoding images for example, would be used first, uncounted.
    pyarrow.default_memory_pool().release_unused()
    ctypes.CDLL(None).malloc_trim(0)
    if gpu:
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated() / MB
    else:
        Path("/proc/self/clear_refs").write_text("5")  # the peak is that from here on
        before = resident_mb("VmRSS")
    started = time.perf_counter()
    update, after = worker.algorithm.update(task, message, state)
    if gpu:
        torch.cuda.synchronize()
    seconds = time.perf_counter() - started
    peak = torch.cuda.max_memory_allocated() / MB if gpu else resident_mb("VmHWM")
    sent, _ = records.split(update, *LOGGED)
    kept, sent_bytes = (records.size(record, worker.net.layout) / MB for record in (after, sent))
    return Reading(4 * worker.net.layout.parameters / MB, peak - before, kept, sent_bytes, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario", help="file")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--gpu", action="store_true")
    given = parser.parse_args()
    scenarios = load_sweep(given.scenario, given.set).scenarios()
    seen = set()
    print(f"{'run':32s} {'model':16s} {'model MB':>9s} {'peak MB':>9s} {'kept MB':>9s} {'sent MB':>9s} {'seconds':>9s}")
    for scenario in scenarios:
        key = (scenario.name, scenario.model, scenario.algorithm)  # runs that differ in nothing else need as much
        if key in seen:
            continue
        seen.add(key)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            reading = pool.apply(measure, (scenario, given.gpu))
        numbers = " ".join(f"{value:9.2f}" for value in reading)
        print(f"{scenario.name:32s} {scenario.model.name:16s} {numbers}", flush=True)


if __name__ == "__main__":
    main()
