"""The base of algorithms whose clients send differences, which an aggregate makes one."""

from raysim.algorithms.aggregates import AnAggregate, Mean
from raysim.algorithms.moving import Moving
from raysim.algorithms.signatures import Arrivals, Problems, ServerTask, Setting
from raysim.parts.errors import Problem
from raysim.terms import Buffer, Population, Record


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
        trigger = self.trigger
        most = trigger.size if isinstance(trigger, Buffer) else scenario.world.dispatch.size
        if most is not None and most < self.aggregate.least:
            key = "algorithm.buffer" if isinstance(trigger, Buffer) else "world.dispatch"
            text = f"must give a step at least {self.aggregate.least} updates, for {self.aggregate.name} needs them"
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
        assert weights is not None  # or `problems` has refused the aggregate
        sums = {key: Mean().of(stack, weights) for key, stack in updates.items() if key not in ("delta", "buffers")}
        return {**updates, **sums, "delta": self.aggregate.of(updates["delta"], weights)}
