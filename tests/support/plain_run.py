"""A run with a server made as plainly as can be: no engine, no workers, one client after the other."""

from typing import Any

import numpy as np
import torch
from conftest import Raw

from raysim import parse_scenario
from raysim.algorithms import Arrival, Central, Record
from raysim.data import federate
from raysim.local.model import Model
from raysim.local.net import Net
from raysim.local.samples import Loader, Samples
from raysim.local.task import Task
from raysim.models.build import initialise
from raysim.terms import ServerStep
from raysim.world.server_happening import Stepped
from raysim.world.server_timeline import ServerTimeline

CPU = torch.device("cpu")


class PlainRun:
    """The states of a server and of its clients, by algorithms whose server has no samples.

    server: the server's state; clients: each client's, in order. Both are first as they are before the first round.
    """

    def __init__(self, raw: Raw) -> None:
        self.scenario = parse_scenario(raw)
        assert isinstance(self.scenario.algorithm, Central)
        self.algorithm = self.scenario.algorithm
        scenario = self.scenario
        self.federation = federate(scenario.data, scenario.server_data, scenario.seed, scenario.public)
        self.loader = Loader(self.federation.mean, self.federation.std, CPU)
        x, _ = self.loader(self.federation.train, np.zeros(1, np.int64))
        module = initialise(scenario.model, tuple(x.shape[1:]), self.federation.num_classes, scenario.seed)
        self.net = Net(module, scenario.model.personal, self.federation.loss, CPU)
        self.start = self.net.model()
        self.population = scenario.population(self.federation.samples)
        self.server: Record = {"buffers": self.start.buffers, **self.algorithm.init(self.start, self.population)}
        self.clients = [self.algorithm.client(self.start) for _ in range(self.federation.clients)]

    @property
    def message(self) -> Record:
        """What a client that is picked now receives."""
        model = {key: self.server[key] for key in ("w", "buffers")}
        return {**model, **self.algorithm.message(self.server)}

    def task(self, client: int, message: Record, dispatch: int = 0) -> Task:
        """A client at work on what it received."""
        rows = self.federation.train_rows(client)
        samples = Samples.of(*self.loader(self.federation.train, rows))
        key = (self.scenario.seed, client, dispatch)
        return Task(self.net, self._received(message), samples, self.scenario.local, self.population, key)

    @property
    def model(self) -> Model:
        """The server's; of one that has the shared part only, with the initial personal part."""
        return self._received(self.message)

    def _received(self, message: Record) -> Model:
        whole = len(message["w"]) == self.net.layout.size
        return self.start.replace(**{"w" if whole else "shared": message["w"], "buffers": message["buffers"]})

    def step(self, arrivals: list[Arrival], updates: list[Record]) -> None:
        """A server step with these updates, each as its client gave it."""
        every = self.algorithm.needs_every_update
        weights = None if every else self.algorithm.weigh(arrivals, self.population)
        samples = [arrival.samples for arrival in arrivals]
        together: dict[str, Any] = {}
        for key in updates[0]:
            of_key = torch.stack([update[key] for update in updates])
            if key == "buffers":
                together[key] = torch.tensor(samples) / sum(samples) @ of_key
            elif weights is None:
                together[key] = of_key
            else:
                for name, one in (weights if isinstance(weights, dict) else {"": weights}).items():
                    together[f"{name}.{key}" if name else key] = torch.tensordot(
                        torch.tensor(one, dtype=of_key.dtype), of_key, 1
                    )
        server: Any = self.task(arrivals[0].client, self.message)  # these algorithms ask it for no samples
        server.vector_flops = 0.0  # which they add to
        stepped = self.algorithm.step(self.server, arrivals, together, server)
        stepped = stepped.state if isinstance(stepped, ServerStep) else stepped
        self.server = {**self.server, "buffers": together.get("buffers", self.server["buffers"]), **stepped}

    def run(self) -> "PlainRun":
        """All rounds; gives itself."""
        scenario, messages = self.scenario, [self.message]
        samples, horizon = self.federation.samples, scenario.run.horizon
        for happening in ServerTimeline(scenario.world, self.algorithm.trigger, samples, horizon, scenario.seed):
            if isinstance(happening, Stepped):
                updates = []
                for member in happening.members:
                    message, state = messages[member.version], self.clients[member.client]
                    task = self.task(member.client, message, member.number)
                    update, self.clients[member.client] = self.algorithm.update(task, message, state)
                    updates.append(update)
                self.step(list(happening.arrivals), updates)
                messages.append(self.message)
        return self
