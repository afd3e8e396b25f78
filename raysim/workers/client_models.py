"""The models that clients predict with, made of what they received and of their states."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from actors import Value
from raysim.algorithms import Central
from raysim.local.batch_norm import pooled
from raysim.local.many import ManyModels
from raysim.local.model import Model
from raysim.terms import ClientState, ModelKey, Record
from raysim.workers import records, returned
from raysim.workers.replies import ClientWire
from raysim.workers.requests import OwnModels, Served
from raysim.workers.server_models import ServerModels
from raysim.workers.variants import Variant
from raysim.workers.workbench import EVALUATING, Workbench

Received = dict[ModelKey, tuple[Record, Model]]  # by level: the message, and the model in it


class ClientModels:
    """Makes clients' own models, for a worker with the data and the model."""

    def __init__(self, bench: Workbench, models: ServerModels) -> None:
        self._bench, self._models = bench, models
        self._many: dict[ModelKey, ManyModels] = {}

    @property
    def _algorithm(self) -> Central:
        assert isinstance(self._bench.algorithm, Central)  # at the moment of the bench
        return self._bench.algorithm

    def received(self, own: OwnModels) -> Received:
        """Returns what clients of each level received, with statistics of BatchNorm if they are collected, and the
        model in it, which is the same for all of them."""
        whole, _ = self._models.opened(own.models[0].message)
        found: Received = {}
        for served in own.models:
            variant = self._bench.variant(served.level)
            message = self._models.cut(served.level, whole, served.version)
            with_own = with_statistics(self._models.received(message, variant.start), variant, served)
            message = {**message, "buffers": with_own.buffers} if served.statistics else message
            found[served.level] = message, self._models.received(message, variant.start)
        return found

    def many(self, own: OwnModels) -> tuple[ManyModels, list[Tensor]] | None:
        """Returns clients' models together, with what in them is each client's own; None if they must be made one by
        one."""
        bench, level, named = self._bench, own.levels[0], self._algorithm.own_model
        net, parts = bench.variant(level).net, named.keys() - {"buffers"}
        if not self._is_named(own) or len(own.models) > 1 or not parts <= {"w", "personal"}:
            return None
        if bench.scenario.run.metrics or bench.federation.skew or not ManyModels.fits(net):
            return None
        if level not in self._many:
            self._many[level] = ManyModels(net, *parts)
        entries = [named[part] for part in parts]
        vectors = [torch.from_numpy(state.content.algorithm[entry]) for state in own.states for entry in entries]
        return self._many[level], vectors or [net.w[:0]] * len(own.clients)

    def _is_named(self, own: OwnModels) -> bool:
        """Whether clients predict with what `own_model` of the algorithm names of their states."""
        named = set(self._algorithm.own_model.values())
        kept = own.states[0].content.algorithm.keys() if own.states else set()
        return type(self._algorithm).personal is Central.personal and not own.unseen and named <= kept

    def predictor(self, own: OwnModels, place: int, received: Received) -> Model | Callable[[Tensor], Tensor]:
        """Returns what a client predicts with. place: the client's place in `own.clients`. received: as `received`
        returns it."""
        bench, algorithm = self._bench, self._algorithm
        bench.at(own.moment)
        client, number = own.clients[place], EVALUATING + own.version
        who = f"client {client}, model version {own.version}, evaluate"
        variant, (message, model) = bench.variant(own.levels[place]), received[own.levels[place]]
        task = bench.task(client, number, model, variant=variant)
        state = state_in(own.states[place] if own.states else None, bench.device).algorithm
        state = variant.cut(state, algorithm.first_unit(own.version))
        bench.logged.take()
        if own.unseen:
            with bench.calling("adapt", client, number, who=who, message=message, state=state) as where:
                adapted = returned.record(where, algorithm.adapt(task, message, state), "the client's state")
                returned.alike(where, adapted, state, "the client's state", "client")
            state = adapted
        with bench.calling("personal", client, number, who=who, message=message, state=state) as where:
            predicts = algorithm.personal(task, message, state)
            bench.refuse_logged("personal or adapt")
            return returned.predictor(where, predicts, variant.net.layout)


def with_statistics(model: Model, variant: Variant, served: Served) -> Model:
    """Returns a model with the statistics of BatchNorm that were collected of it, if any were."""
    found = [records.borrow(value.content, model.w.device) for value in served.statistics]
    return model.replace(buffers=pooled(model.buffers, variant.net.layout, found)) if found else model


def state_in(value: Value[ClientWire] | None, device: torch.device) -> ClientState[Tensor]:
    """Returns a client's state, which may be changed in place but for what transforms keep; an empty one if clients
    keep none."""
    if not value:
        return ClientState()
    _, _, up, _, down = value.content.map(partial(records.borrow, device=device))
    own = value.content._replace(uplink={}, downlink={}).map(partial(records.receive, device=device))
    return own._replace(uplink=up, downlink=down)
