"""What an update of a client costs, for each model that clients have, and what the server keeps."""

from __future__ import annotations

import numpy as np

from raysim.scenario import Scenario
from raysim.terms import Buffer, ClientState, ModelKey, Record, Traffic
from raysim.uplink.uplink import shadows_each
from raysim.workers import records
from raysim.workers.client import ClientWorker
from raysim.workers.releasing import Releasing
from raysim.workers.replies import Passes, WorkCost
from raysim.workers.variants import Variant


def model_keys(scenario: Scenario) -> tuple[ModelKey, ...]:
    """Returns the keys of models, where clients do not all train the server's."""
    return (1.0, *scenario.models) if scenario.models else scenario.levels


def forward_flops(worker: ClientWorker, level: ModelKey) -> float:
    """Returns the FLOPs of one sample's forward pass of a client with the model of a key."""
    if level == 1 and not worker.scenario.levels:
        return worker.forward_flops
    if isinstance(level, str):
        return worker.variant(level).forward_flops(worker.samples.some)
    trained = worker.algorithm.trains(level, worker.population.levels)
    return sum(worker.variant(one).forward_flops(worker.samples.some) for one in trained) / len(trained)


def work_cost(worker: ClientWorker, level: ModelKey, first: Record, later: Record) -> WorkCost:
    """Measures what an update of a client with the model of a key costs. first: the first message. later: the same
    record, or a message all of whose entries are filled."""
    variant, batch, federation = worker.variant(level), worker.local.batch_size, worker.federation
    begins, whole = (variant.cut(worker.models.at_level(level, one)) for one in (first, later))
    message, _ = worker.adapting.apart(whole)
    update, predicted = tried(worker, federation.smallest, message, variant)
    if worker.scenario.release is not None:
        Releasing(worker.scenario, variant.sending).covered(records.split(update, "buffers")[0])
    layout = variant.net.layout
    down = [
        (records.size(received, layout), variant.receiving.vectors(worker.downlink, received))
        for received in map(worker.models.travelling, (begins, whole))
    ]
    most = int(federation.samples.max())
    some = worker.samples.samples_of(federation.train, np.arange(min(2, len(federation.train))))
    kept = len(worker.local.optimizer.init(worker.start.w))
    return WorkCost(
        forward_flops=forward_flops(worker, level),
        passes=Passes.through(federation, predicted, lambda client: tried(worker, client, message, variant)[1]),
        passes_per_neighbour=Passes(0.0, 0.0),
        sizes=variant.sizes,
        tensors=Traffic(records.size(update, layout), down[1][0]),
        up=variant.sending.vectors(worker.uplink, update),
        down=down[1][1],
        first=None if later is first else down[0],
        memory_bytes=variant.memory_bytes(kept, some, min(batch or most, most)) if model_keys(worker.scenario) else 0,
    )


def tried(worker: ClientWorker, client: int, message: Record, variant: Variant) -> tuple[Record, float]:
    """Trains a client for one step. Returns its update, and how many samples passed forward besides."""
    one_step, before = worker.local.model_copy(update={"steps": 1}), variant.net.predicted
    task = worker.task(client, 0, worker.models.received(message, variant.start), one_step, variant)
    first = worker.models.first_client(variant.level)
    copies = ClientState(first.algorithm, {name: entry.clone() for name, entry in first.optimizer.items()})
    copies = copies._replace(algorithm=variant.cut(copies.algorithm))
    update, _ = worker.updated(task, message, copies, f"client {client}")
    return update, variant.net.predicted - before


def kept_bytes(worker: ClientWorker, state: Record, message: Record, update: Record) -> int:
    """Returns the bytes that a real server would have to keep between steps. update: an example of an update."""
    kept = records.size(state, worker.net.layout) + worker.net.frozen_bytes
    trigger = worker.algorithm.trigger
    if isinstance(trigger, Buffer) and trigger.size > 1:
        kept += trigger.size * records.size(update, worker.net.layout)
    if worker.algorithm.caches_clients:
        kept += worker.population.clients * records.size(worker.models.first_client().algorithm, worker.net.layout)
    if any(map(shadows_each, worker.downlink)):
        copies = worker.variant(1.0).receiving.channels(worker.downlink, worker.models.travelling(message))
        kept += worker.population.clients * sum(one.whole_bits for one in copies) // 8
    return kept
