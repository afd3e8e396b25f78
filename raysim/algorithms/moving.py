"""The base of algorithms whose server moves its model along a direction that clients' differences give."""

from abc import abstractmethod
from typing import Any

from pydantic import field_validator

from raysim.algorithms.central import Central
from raysim.algorithms.rules import Rule, ServerSGD
from raysim.algorithms.signatures import Arrivals, Direction, Model, ServerTask, Tensor
from raysim.parts.part import names_of, spell_out
from raysim.terms import Population, Record

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
