"""A worker on Ray: an actor that hosts it, and what the pool knows of it."""

import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import ray

from actors.host import Host
from actors.job import Gang, Job, Seat
from actors.process import Process


class Mailbox:
    """What the members of a gang have passed to this one, by the number of the exchange."""

    def __init__(self) -> None:
        self._passed: dict[int, dict[int, Any]] = defaultdict(dict)
        self._changed = threading.Condition()

    def put(self, number: int, rank: int, passed: Any) -> None:
        with self._changed:
            self._passed[number][rank] = passed
            self._changed.notify_all()

    def take(self, number: int, size: int) -> list[Any]:
        """Waits until so many have passed something, and returns it in order of rank."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._passed[number]) == size)
            return [passed for _, passed in sorted(self._passed.pop(number).items(), key=lambda item: item[0])]


class Members(Gang):
    """A gang of several actors, as one of them sees it. It waits for others; if one dies, the pool ends all of them."""

    def __init__(self, seat: Seat, mail: Mailbox) -> None:
        self.rank, self.size = seat.rank, len(seat.members)
        self._others = [member for rank, member in enumerate(seat.members) if rank != seat.rank]
        self._mail, self._number = mail, 0

    def gather(self, mine: Any) -> list[Any]:
        self._number += 1
        for other in self._others:
            other.receive.remote(self._number, self.rank, mine)
        self._mail.put(self._number, self.rank, mine)
        return self._mail.take(self._number, self.size)


class RayHost(Host):
    """The class of the actors: a Host that knows its node. Each group has a subclass with its name."""

    def node(self) -> str:
        """Returns Ray's id of its node. It answers as soon as it runs."""
        node: str = ray.get_runtime_context().get_node_id()
        return node

    @ray.method(concurrency_group="beside")
    def receive(self, number: int, rank: int, passed: Any) -> None:
        """Takes what another member of its gang passed, in a thread beside that of jobs."""
        self._mail.put(number, rank, passed)

    def _forget(self) -> None:
        super()._forget()
        self._mail = Mailbox()
        self._gang: Members | None = None

    def gang(self, seat: Seat | None) -> Gang:
        if seat is None:
            return super().gang(seat)
        if self._gang is None:  # if a member of a gang dies, all are replaced
            self._gang = Members(seat, self._mail)
        return self._gang

    def where(self) -> str:
        """Returns the node, where there are several: a file may be on some of them only."""
        several = sum(node["Alive"] for node in ray.nodes()) > 1
        return f"on node {ray.util.get_node_ip_address()}" if several else ""


def actor_class(group: str) -> Any:
    """Returns the actor class of a group. Its name, such as Client, is the workers' role in Ray's dashboard."""
    remote: Any = ray.remote  # its types lack this option
    return remote(concurrency_groups={"beside": 1})(type(group.capitalize(), (RayHost,), {"__module__": __name__}))


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
    failures: int = 0  # how many of the latest predecessors died in their set-up
    asked: float = field(default_factory=time.monotonic)  # when it was asked for
    node_id: str | None = None  # None until it runs
    process: Process | None = None  # None until its first set-up is done
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
        return self.process.node if self.process else ""
