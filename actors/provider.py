"""A worker on Ray, as workers of other groups ask it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ray

from actors.host import Failure
from actors.job import Query, Result


@dataclass(frozen=True)
class RayProvider:
    """A worker that workers of other groups may ask. A set-up may hold it."""

    actor: Any  # Ray's handle of the worker's actor
    node: str | None  # Ray's id of its node

    @property
    def is_here(self) -> bool:
        return bool(ray.get_runtime_context().get_node_id() == self.node)

    def ask(self, query: Query[Result]) -> Result:
        answer = ray.get(self.actor.call.options(name=query.name).remote(query, None, []))
        if isinstance(answer, Failure):
            raise RuntimeError(f"{query.name}: {answer.cause}")
        result: Result = answer.result
        return result
