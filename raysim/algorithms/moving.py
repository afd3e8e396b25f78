"""The bases of algorithms whose server moves its model along a direction that clients' differences give."""

from abc import abstractmethod
from typing import Any

from pydantic import field_validator

from raysim.algorithms.aggregates import AnAggregate, Mean
from raysim.algorithms.central import Central
from raysim.algorithms.rules import Rule, ServerSGD
from raysim.algorithms.signatures import Arrivals, Direction, Model, Problems, ServerTask, Setting, Tensor
from raysim.parts.errors import Problem
from raysim.parts.part import names_of, spell_out
from raysim.terms import Buffer, Population, Record

RULE = "rule."  # starts the names of a rule's entries in the server's state, where others may have the same names


class Moving(Central):
    """An algorithm whose server moves by a rule along what clients' differences amount to.

    A subclass says with `direction` where to move; the rule says how far, and what is kept from step to step. The state
    of the rule stands beside the algorithm's own in the server's state: `init` of a subclass extends `starting`.
    """

    server: Rule = ServerSGD()
    """How the server moves along the direction of a step: sgd, adagrad, adam, yogi, amsgrad. Keys that are left out
    are those of the algorithm's default rule, if it is the same or none is named."""

    @field_validator("server", mode="before")
    @classmethod
    def _of_the_default(cls, value: Any) -> Any:
        default, block = cls.model_fields["server"].default, spell_out(value)
        if isinstance(block, dict) and block.get("name") in (None, *names_of(type(default))):
            return {**default.model_dump(), **block}
        return value

    def starting(self, w: Tensor) -> Record:
        """Returns the server's first state: the parameters that it moves, and what its rule keeps."""
        return {"w": w, **{RULE + key: value for key, value in self.server.init(w).items()}}

    def init(self, model: Model, population: Population) -> Record:
        return self.starting(model.w)

    @abstractmethod
    def direction(self, state: Record, arrivals: Arrivals, updates: Record, task: ServerTask) -> Direction:
        """Returns where to move, (d,), or None to stay, and entries of the next state besides those of the rule.

        The arguments are those of `step`.
        """

    def step(self, state: Record, arrivals: Arrivals, updates: Record, task: ServerTask) -> Record:
        direction, others = self.direction(state, arrivals, updates, task)
        if direction is None:
            return {"w": state["w"], **others}
        lr = self.server.rate(max((arrival.staleness for arrival in arrivals), default=0.0))
        kept = {key.removeprefix(RULE): value for key, value in state.items() if key.startswith(RULE)}
        w, after = self.server.move(kept, state["w"], direction, lr)
        return {"w": w, **{RULE + key: value for key, value in after.items()}, **others}


class Aggregating(Moving):
    """An algorithm whose clients send differences `delta`, and whose server moves by a rule along one that is made of
    them. `direction` finds that under `delta` in `updates`."""

    aggregate: AnAggregate = Mean()
    """How the updates of a step become one: mean, or an aggregate that resists some wrong ones, for which a step keeps
    every update."""

    @property
    def needs_every_update(self) -> bool:
        return not isinstance(self.aggregate, Mean)

    def problems(self, scenario: Setting) -> Problems:
        """Yields a problem if a step can never have the updates that the aggregate needs."""
        if not self.needs_every_update:
            return
        trigger = self.trigger
        most = trigger.size if isinstance(trigger, Buffer) else scenario.world.dispatch.size
        if most is not None and most < self.aggregate.least:
            key = "algorithm.buffer" if isinstance(trigger, Buffer) else "world.dispatch"
            text = f"must give a step at least {self.aggregate.least} updates, because {self.aggregate.name} needs them"
            yield Problem(key, f"{text}, got {most}; raise it, or lower the numbers of algorithm.aggregate")

    def step(self, state: Record, arrivals: Arrivals, updates: Record, task: ServerTask) -> Record:
        if self.needs_every_update and "delta" in updates:
            task.vector_flops += self.aggregate.flops(*updates["delta"].shape)
            updates = self._aggregated(updates, arrivals, task.population)
        return super().step(state, arrivals, updates, task)

    def _aggregated(self, updates: Record, arrivals: Arrivals, population: Population) -> Record:
        """Returns the aggregate of the differences, and the weighted sums of what else clients send."""
        self.aggregate.require(len(arrivals))
        weights = self.weigh(arrivals, population)
        assert isinstance(weights, list)  # or `problems` has refused the aggregate
        sums = {key: Mean().of(stack, weights) for key, stack in updates.items() if key not in ("delta", "buffers")}
        return {**updates, **sums, "delta": self.aggregate.of(updates["delta"], weights)}
