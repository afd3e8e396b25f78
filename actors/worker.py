"""A worker on Ray: an actor that hosts it, and what the pool knows of it."""

import time
from dataclasses import dataclass, field
from typing import Any

import ray

from actors.gang import Address, Door
from actors.host import Failure, Host
from actors.job import Job, Query, Result
from actors.process import Life, Process
from actors.pulse import Pulse


class RayHost(Host):
    """The class of the actors: a Host that knows its node. Each group has a subclass with its name."""

    def node(self) -> str:
        """Returns Ray's id of its node. It answers as soon as it runs."""
        node: str = ray.get_runtime_context().get_node_id()
        return node

    @ray.method(concurrency_group="pings")
    def answer(self) -> None:
        """Answers a ping, in a thread of its own."""

    def address(self) -> Address:
        """Opens a door for the gang of which this is the first member, and returns its address."""
        self._door = Door(ray.util.get_node_ip_address())
        return self._door.address

    def where(self) -> str:
        """Returns the node, where there are several: a file may be on some of them only."""
        several = sum(node["Alive"] for node in ray.nodes()) > 1
        return f"on node {ray.util.get_node_ip_address()}" if several else ""


def actor_class(group: str) -> Any:
    """Returns the actor class of a group. Its name, such as Client, is the workers' role in Ray's dashboard."""
    remote: Any = ray.remote  # its types lack this option
    return remote(concurrency_groups={"pings": 1})(type(group.capitalize(), (RayHost,), {"__module__": __name__}))


def process() -> Process:
    """Describes the process of an actor."""
    given = ray.get_runtime_context().get_accelerator_ids().get("GPU", [])
    return Process.this(ray.util.get_node_ip_address(), given)


@dataclass(eq=False)
class Worker:
    """A worker. It exists from the moment that it is asked for, even while Ray has no room for its actor."""

    name: str
    number: int  # its number among the workers of its group
    actor: Any  # Ray's handle of the actor
    pulse: Pulse
    failures: int = 0  # how many of the latest predecessors died in their set-up
    asked: float = field(default_factory=time.monotonic)  # when it was asked for
    node_id: str | None = None  # None until it runs
    life: Life | None = None  # None until its first set-up is done
    told: bool = False  # whether users have been warned that it waits for a node
    calls: dict[Any, Job[Any, Any] | None] = field(default_factory=dict)  # by answer; None: a set-up

    @property
    def jobs(self) -> list[Job[Any, Any]]:
        """The jobs that it was given and has not done."""
        return [job for job in self.calls.values() if job]

    @property
    def is_set_up(self) -> bool:
        """Whether it can be given jobs."""
        return None not in self.calls.values()

    @property
    def waits_s(self) -> float:
        """For how many seconds it has waited for room on a node; 0 once it runs."""
        return 0.0 if self.node_id else time.monotonic() - self.asked

    @property
    def node(self) -> str:
        """The address of its node; empty until it is known."""
        return self.life.process.node if self.life else ""

    @property
    def state(self) -> str:
        """What it is doing, for dashboards."""
        if self.node_id is None:
            return "waiting"
        return "starting" if not self.is_set_up else "busy" if self.jobs else "idle"


@dataclass(frozen=True)
class RayProvider:
    """A Provider on Ray."""

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
