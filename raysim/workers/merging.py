"""The updates of a step merged, for each of the models that the server has."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import torch

from raysim.terms import Arrival, Record, Weight
from raysim.workers import records, returned
from raysim.workers.client import ClientWorker
from raysim.workers.replies import Numbers
from raysim.workers.requests import StepRequest, shares
from raysim.workers.variants import Variant


class Merged(NamedTuple):
    """The updates of a step that are of one model."""

    variant: Variant  # the model
    request: StepRequest  # the step's, with the arrivals and weights of these updates
    updates: Record  # summed or stacked
    buffers: Record  # averaged over the step's samples
    chunks: list[int]  # the number of updates in each chunk, if they are stacked
    compared: list[Numbers]  # how they compare, if that is asked


def merged(worker: ClientWorker, request: StepRequest) -> list[Merged]:
    """Returns the updates of a step for the server's model or, if it has several, for each of them."""
    if len(worker.models.servers) == 1:
        return [_merged(worker, worker.models.servers[0], request)]
    found = []
    for variant in worker.models.servers:
        places = [n for n, arrival in enumerate(request.arrivals) if (arrival.architecture or 1.0) == variant.level]
        weights = None if request.weights is None else tuple(request.weights[place] for place in places)
        arrivals = tuple(request.arrivals[place] for place in places)
        found.append(_merged(worker, variant, replace(request, arrivals=arrivals, weights=weights)))
    return found


def _merged(worker: ClientWorker, variant: Variant, request: StepRequest) -> Merged:
    mine = worker.models.mine
    # Borrowed, because sums and stacks are new tensors, and the chunks' values are only read.
    vectors, buffers = (
        [mine(variant.level, records.borrow(chunk.content[place], worker.device)) for chunk in request.chunks]
        for place in (0, 1)
    )
    if len(worker.models.servers) > 1:  # a chunk need not hold updates of each model
        vectors, buffers = list(filter(None, vectors)), list(filter(None, buffers))
    weights, scenario = request.weights, worker.scenario
    where = f"{type(worker.algorithm).__name__}.update"
    returned.same_updates(where, vectors, weights is not None and not scenario.server_sums)
    compared = _compare(vectors, request.arrivals) if scenario.run.compare_updates else []
    sizes = [records.length([stack]) for stack in vectors] if weights is None else []
    if weights is not None and scenario.server_sums:
        vectors = records.weighed(vectors, weights)
    if scenario.follows_training and buffers:  # each chunk is one client, whose share was not known when it trained
        weighed = zip(buffers, shares(request.arrivals), strict=True)
        buffers = [{key: value * share for key, value in own.items()} for own, share in weighed]
    updates = records.merge(vectors, weights is not None)
    return Merged(variant, request, updates, records.merge(buffers, summed=True), sizes, compared)


def in_order(parts: Sequence[Merged], arrivals: Sequence[Arrival]) -> list[Numbers]:
    """Returns how updates of all models compare, in the order of arrivals."""
    found: dict[int, Numbers] = {}
    for part in parts:
        pairs = zip(part.request.arrivals, part.compared, strict=bool(part.compared))
        found |= {arrival.dispatch: one for arrival, one in pairs}
    return [found[arrival.dispatch] for arrival in arrivals] if found else []


def one_update(updates: Record, weights: Sequence[Weight] | None) -> tuple[Record, int]:
    """Returns entries like those of one update of a step, and how many sums of updates the step has."""
    if weights is None:
        return {key: stack[0] for key, stack in updates.items()}, 1
    if not weights or not isinstance(weights[0], Mapping):
        return updates, 1
    first = f"{next(iter(weights[0]))}."
    return {key.removeprefix(first): entry for key, entry in updates.items() if key.startswith(first)}, len(weights[0])


def _compare(stacks: Sequence[Record], arrivals: Sequence[Arrival]) -> list[Numbers]:
    """Returns norm and cosine of each update for the table `updates`, in order; null where they are not defined.

    The less clients' data are alike, and the staler updates are, the less they agree (Zhu et al., Guided model merging
    for hybrid data learning, 2025, figure 2).

    stacks: the step's updates, whose "delta" is (n, d) each; [] is returned if they have none. The cosine is that
    between an update and the mean of all, weighted by samples.
    """
    if not stacks or "delta" not in stacks[0]:
        return []
    deltas = torch.cat([stack["delta"] for stack in stacks])
    samples = deltas.new_tensor([float(arrival.samples) for arrival in arrivals])
    mean = samples @ deltas / samples.sum()
    norms = deltas.norm(dim=1)
    cosines = deltas @ mean / (norms * mean.norm())
    pairs = zip(norms.tolist(), cosines.tolist(), strict=True)
    return [{"update_norm": _finite(norm), "update_cosine": _finite(cosine)} for norm, cosine in pairs]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
