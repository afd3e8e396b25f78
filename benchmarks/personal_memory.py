"""Measures the memory and time of a client's update, for each run of a scenario file, which may hold a sweep.

    python benchmarks/personal_memory.py scenarios/fedeq/cifar10.yaml --set data.root=FOLDER [--gpu]

Each update is measured in a process of its own: by how much memory rises while the client trains, and what it keeps and
sends. Memory is resident memory on a CPU, and what torch allocates on a GPU. The client with most samples trains. Where
the scenario's local training applies, it takes ten steps; trainings with epochs of their own are whole. Linux only.
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
    """What was measured of an update, in MB unless noted."""

    parameters: float  # of the model
    peak: float  # the largest rise while the client trains
    kept: float  # the client's state after it
    sent: float  # the update
    seconds: float  # wall time, in seconds


def resident_mb(key: str) -> float:
    """Returns resident memory. key: VmRSS for what is resident now, VmHWM for its peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key)) / 1024


def measure(scenario: Scenario, gpu: bool) -> Reading:
    import pyarrow
    import torch

    from actors import Value
    from raysim.data import federate
    from raysim.workers import records
    from raysim.workers.workshop import Become, Workshop

    federation = federate(scenario.data, scenario.server_data, scenario.seed, scenario.public)
    worker = Become(Value(federation)).build(Workshop(scenario, 1.0 if gpu else 0.0))
    client = int(federation.samples.argmax())
    message = worker.models.message(worker.models.first_state())
    state = worker.algorithm.client(worker.start)
    task = worker.task(client, 0, worker.models.received(message))
    # What libraries set aside when they are first used is not the update's: a step of two samples uses them.
    task.train(task.received, steps=1, batch_size=2)
    task.local = scenario.local.model_copy(update={"steps": 10})
    gc.collect()
    # Memory that was freed but not returned to the system would be used first, without being counted.
    pyarrow.default_memory_pool().release_unused()
    ctypes.CDLL(None).malloc_trim(0)
    if gpu:
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated() / MB
    else:
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak
        before = resident_mb("VmRSS")
    started = time.perf_counter()
    update, after = worker.algorithm.update(task, message, state)
    if gpu:
        torch.cuda.synchronize()
    seconds = time.perf_counter() - started
    peak = torch.cuda.max_memory_allocated() / MB if gpu else resident_mb("VmHWM")
    kept, sent_bytes = (records.size(record, worker.net.layout) / MB for record in (after, update))
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
        key = (scenario.name, scenario.model, scenario.algorithm)  # runs that are equal in these need the same memory
        if key in seen:
            continue
        seen.add(key)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            reading = pool.apply(measure, (scenario, given.gpu))
        numbers = " ".join(f"{value:9.2f}" for value in reading)
        print(f"{scenario.name:32s} {scenario.model.name:16s} {numbers}", flush=True)


if __name__ == "__main__":
    main()
