"""The models that a server has, what it sends of them, and what clients receive and predict with."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import torch
from torch import Tensor

from actors import Value
from raysim.algorithms import Central
from raysim.local.batch_norm import pooled, tracking
from raysim.local.many import ManyModels
from raysim.local.model import Model
from raysim.local.steps import first_kept
from raysim.terms import ClientState, ModelKey, Record, Wire, suffixed
from raysim.workers import records, returned
from raysim.workers.requests import OwnModels, Served
from raysim.workers.sending import DrawKey
from raysim.workers.variants import Variant
from raysim.workers.workbench import EVALUATING, Workbench

Received = dict[ModelKey, tuple[Record, Model]]  # by level: the message, and the model in it


class ServerModels:
    """The states and messages of a server, and what clients make of them, for a worker with the data and the model."""

    def __init__(self, bench: Workbench) -> None:
        """bench: if its scenario has models apart, entries of one record are told apart by their names."""
        self._bench, self._adapting, self._apart = bench, bench.adapting, bench.scenario.apart
        self._many: dict[ModelKey, ManyModels] = {}

    @property
    def _algorithm(self) -> Central:
        assert isinstance(self._bench.algorithm, Central)  # at the moment of the bench
        return self._bench.algorithm

    # --- states -------------------------------------------------------------------------------------------------------

    def at_level(self, level: ModelKey, message: Record) -> Record:
        """Returns the message of a model, with the buffers of a level."""
        levels, message = self._bench.population.levels, self.mine(level, message)
        if isinstance(level, str) or level not in levels:
            return message
        return self._algorithm.at_level(message, levels.index(level))

    def cut(self, level: ModelKey, message: Record, version: int) -> Record:
        """Returns what of a version's message a client with the model of a level has."""
        return self._bench.variant(level).cut(self.at_level(level, message), self._algorithm.first_unit(version))

    @cached_property
    def pools(self) -> bool:
        """Whether statistics of BatchNorm are collected for evaluations."""
        return self._algorithm.pools_statistics and bool(tracking(self._bench.net.module))

    # --- messages -----------------------------------------------------------------------------------------------------

    def opened(self, message: Value[Wire]) -> tuple[Record, Record]:
        """Returns a message, and the bound that came with it."""
        return self._adapting.apart(records.receive(message.content, self._bench.device))

    def received(self, message: Record, start: Model | None = None) -> Model:
        """Returns the model in a message. If that holds the shared part only, the personal part is the initial one.

        start: the first values of the receiver's model; by default, those of the server's.
        """
        w, buffers, start = message["w"], message["buffers"], start or self._bench.start
        if len(w) == len(start.w):
            return start.replace(w=w, buffers=buffers)
        return start.replace(shared=w, buffers=buffers)

    @cached_property
    def servers(self) -> list[Variant]:
        """The models that the server has."""
        scenario = self._bench.scenario
        return [self._bench.whole, *map(self._bench.variant, scenario.models if scenario.apart else ())]

    def mine(self, key: ModelKey, record: Record) -> Record:
        """Returns what of the server's state, of its message, or of updates of a step is about the model of a key."""
        if self._apart:
            pairs = ((name, name.partition(" of ")[0]) for name in record)
            return {own: record[name] for name, own in pairs if name == suffixed(own, key)}
        if isinstance(key, str) and "w" in record:  # which is there for evaluations only
            start = self._bench.variant(key).start
            return {**record, "w": start.w, "buffers": start.shared_buffers}
        return record

    def named(self, key: ModelKey, record: Record) -> Record:
        """Returns a record of the model of a key, under names by which `mine` finds it."""
        return {suffixed(name, key): entry for name, entry in record.items()} if self._apart else record

    def first_state(self) -> Record:
        """Returns the server's state before the first round."""
        found: Record = {}
        for variant in self.servers:
            with self._bench.calling("init") as where:
                given = self._algorithm.init(variant.start, self._bench.population)
                state = returned.record(where, given, "the server's state")
                if "w" not in state:
                    raise returned.ContractError(f"{where}: the server's state must hold 'w', got {sorted(state)!r}")
                returned.vector(where, state, variant.net.layout, "the server's state", shared=True)
            found |= self.named(variant.level, {"buffers": variant.start.shared_buffers, **state})
        return {**found, **self._adapting.first(self._bench.start.w)}

    def first_client(self, key: ModelKey = 1.0) -> ClientState[Tensor]:
        """Returns the state of a client with the model of a key before it first takes part."""
        variant = self._bench.variant(key) if isinstance(key, str) else self._bench.whole
        with self._bench.calling("client") as where:
            state = returned.record(where, self._algorithm.client(variant.start), "a client's state")
        return ClientState(state, first_kept(self._bench.scenario.local.optimizer, variant.start.w))

    def message(self, state: Record, version: int = 0) -> Record:
        """Returns the message of this state of the server, and adds the model if the algorithm does not send it,
        because it is evaluated."""
        found: Record = {}
        own, bound = self._adapting.apart(state)
        for variant in self.servers:
            of = self.mine(variant.level, own)
            sent = {"buffers": of["buffers"], "w": of["w"], **self.sent(of, version, variant)}
            found |= self.named(variant.level, sent)
        return {**found, **self._adapting.sent(bound)}

    def sent(self, state: Record, version: int, variant: Variant) -> Record:
        """Returns what the algorithm sends of a state, of the model of a variant."""
        with self._bench.calling("message", version, who=f"model version {version}", state=state) as where:
            sent = returned.record(where, self._algorithm.message(state), "the message")
            returned.vector(where, sent, variant.net.layout, "the message", shared=True)
            if version and sent.keys() != self._entries:
                must = f"must have the entries of the first one, {sorted(self._entries)!r}, got {sorted(sent)!r}"
                raise returned.ContractError(f"{where}: the message {must}; send all of them in every version")
            return sent

    def as_received(
        self, message: Record, key: DrawKey, kept: dict[int, Record], variant: Variant
    ) -> tuple[Record, dict[int, Record]]:
        """Returns a message as clients decode it, and what transforms of `downlink` keep.

        kept: what they kept before. variant: the model of the message.
        """
        found = variant.receiving(self._bench.downlink, key, self.travelling(message), {}, kept)
        return {**message, **found.record}, found.kept

    def travelling(self, message: Record) -> Record:
        """Returns what of a message a client receives, without what is there only for evaluations."""
        not_sent = set() if "w" in self._entries else {"w", "buffers"} - self._entries  # buffers go with the model
        not_sent |= {"buffers"} if self.pools else set()
        sent, _ = records.split(message, *not_sent)
        return sent

    @cached_property
    def _entries(self) -> frozenset[str]:
        """The entries of the messages that the algorithm sends."""
        state = self.mine(1.0, self._adapting.apart(self.first_state())[0])
        return frozenset(self.sent(state, 0, self._bench.whole))

    # --- what clients predict with ------------------------------------------------------------------------------------

    def received_by(self, own: OwnModels) -> Received:
        """Returns what clients of each level received, with statistics of BatchNorm if they are collected, and the
        model in it, which is the same for all of them."""
        whole, _ = self.opened(own.models[0].message)
        found: Received = {}
        for served in own.models:
            variant = self._bench.variant(served.level)
            message = self.cut(served.level, whole, served.version)
            with_own = self.with_statistics(self.received(message, variant.start), variant, served)
            message = {**message, "buffers": with_own.buffers} if served.statistics else message
            found[served.level] = message, self.received(message, variant.start)
        return found

    def with_statistics(self, model: Model, variant: Variant, served: Served) -> Model:
        """Returns a model with the statistics of BatchNorm that were collected of it, if any were."""
        found = [records.borrow(value.content, self._bench.device) for value in served.statistics]
        return model.replace(buffers=pooled(model.buffers, variant.net.layout, found)) if found else model

    def many(self, own: OwnModels) -> tuple[ManyModels, list[Tensor]] | None:
        """Returns clients' models together, with what in them is each client's own; None if they must be made one by
        one."""
        bench, level, named = self._bench, own.levels[0], self._algorithm.own_model
        variant, parts = bench.variant(level), named.keys() - {"buffers"}
        kept = own.states[0].content.algorithm.keys() if own.states else set()
        kind, takes = type(self._algorithm), [set(), {"w"}]
        takes += [{"personal"}] if variant.net.part("personal").parameters else []
        computed = own.unseen or kind.personal is not Central.personal or kind.own is not Central.own
        computed = computed or any(entry not in kept for entry in named.values())
        sliced = len(own.models) > 1 or (parts and variant.slices)
        differ = sliced or parts not in takes or bench.scenario.run.metrics or bench.federation.skew
        if computed or differ or not ManyModels.fits(variant.net):
            return None
        if level not in self._many:
            self._many[level] = ManyModels(variant.net, *parts)
        entries = [named[part] for part in parts]
        vectors = [torch.from_numpy(state.content.algorithm[entry]) for state in own.states for entry in entries]
        return self._many[level], vectors or [variant.net.w[:0]] * len(own.clients)

    def predictor(self, own: OwnModels, place: int, received: Received) -> Model | Callable[[Tensor], Tensor]:
        """Returns what a client predicts with. place: the client's place in `own.clients`. received: as
        `received_by` returns it."""
        bench, algorithm = self._bench, self._algorithm
        bench.at(own.moment)
        client, number = own.clients[place], EVALUATING + own.version
        who = f"client {client}, model version {own.version}, evaluate"
        variant, (message, model) = bench.variant(own.levels[place]), received[own.levels[place]]
        task = bench.task(client, number, model, variant=variant)
        state = records.state_in(own.states[place] if own.states else None, bench.device).algorithm
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
