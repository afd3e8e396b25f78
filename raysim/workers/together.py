"""Finds out whether clients can be trained together, before a run starts to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from raysim.local import stacked
from raysim.local.rehearsal import Rehearsal, Wanted
from raysim.local.train import Trainer

if TYPE_CHECKING:
    from raysim.workers.client import ClientWorker


def why_one_by_one(worker: ClientWorker) -> str | None:
    """Returns why this worker's clients cannot be trained together; None if they can.

    It tries the model on three samples, and an update of one client, which leaves no trace.
    """
    scenario = worker.scenario
    if scenario.resources.chunk == 1:
        return "a chunk holds one client only, see resources.chunk"
    if scenario.follows_training:
        return f"they train at their dispatch, because with {scenario.algorithm.name} delays follow the work done"
    train = worker.federation.train
    x, y = worker.loader(train, np.arange(min(3, len(train))))
    with torch.random.fork_rng(devices=[]):
        obstacle = stacked.obstacle(worker.net, worker.start, x, y)
        if obstacle is None and not _wants(worker):
            obstacle = f"{scenario.algorithm.name} trains to a tolerance, with a loss of its own, or not at all"
    worker.net.load(worker.start)
    worker.take_logged()
    return obstacle


def _wants(worker: ClientWorker) -> bool:
    """Whether the first training of an update can wait for those of other clients."""
    client = worker.federation.smallest
    message, state = worker.message(worker.first_state()), worker.first_client()

    def update(trainer: Trainer) -> None:
        with worker.calling("update", client, 0, who=f"client {client}", message=message, state=state):
            worker.algorithm.update(worker.client_task(client, 0, message, trainer), message, state)

    try:
        Rehearsal(update).play()
    except Wanted:
        return True
    return False
