"""What the states of clients will take in a run, known before it begins."""

import math
from typing import Any, NamedTuple

from rich.filesize import decimal

from raysim.algorithms import Central
from raysim.data import Federation, federate
from raysim.engine.families import family_of
from raysim.parts.process import isolated
from raysim.scenario import Scenario


class States(NamedTuple):
    """The states that clients keep from one update to the next."""

    clients: int  # that may have one when the run ends
    each: int  # bytes of one, without what transforms of messages remember

    @property
    def bytes(self) -> int:
        """The bytes of all of them, in memory, and in a checkpoint on disk."""
        return self.clients * self.each

    def __str__(self) -> str:
        return f"{self.clients:,} clients x {decimal(self.each)} = {decimal(self.bytes)} of states"


def states_of(scenario: Scenario, federation: Federation, worker: Any) -> States | None:
    """Returns what states of clients take; None if they keep none, and for peers. worker: that of the family."""
    if not keeps_states(scenario):
        return None
    first = worker.models.first_client()
    tensors = (*first.algorithm.values(), *first.optimizer.values())
    each = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    return States(int(min((federation.samples > 0).sum(), _updates(scenario))), each) if each else None


def keeps_states(scenario: Scenario) -> bool:
    """Whether clients may keep a state, as far as the scenario tells."""
    if not scenario.has_server:
        return False
    return type(scenario.central).client is not Central.client or scenario.local.optimizer.keep


def states(scenario: Scenario) -> States | None:
    """Returns what `states_of` does. It loads the data and the model, if clients may keep states."""
    if not keeps_states(scenario):
        return None
    with isolated(torch=True):
        federation = federate(scenario.data, scenario.server_data, scenario.seed, scenario.public)
        return states_of(scenario, federation, family_of(scenario).worker(federation))


def _updates(scenario: Scenario) -> float:
    """Returns how many updates the run uses at most; infinite if its end does not tell."""
    horizon, world = scenario.run.horizon, scenario.world
    size = world.dispatch.size if world.has_rounds else getattr(scenario.central.trigger, "size", None)
    return min(horizon.updates, horizon.rounds * (size or math.inf))
