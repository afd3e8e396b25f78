"""The actors of workers on Ray. They outlive a pool, and the next one has them again."""

import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import ray
from ray.exceptions import RayError

from actors.host import Host
from actors.job import Gang, Seat
from actors.placement import Placement
from actors.pool import Needs
from actors.process import Process
from actors.queue import Worker

END_S = 2.0  # seconds that workers may take to end what they do, when a run is over
REST_S = 7.0  # seconds that they may then take to let go of the run


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


class Actors:
    """Starts actors, named `<name>/<worker>`, and keeps those that a run leaves as they were."""

    def __init__(self, name: str, placement: Placement) -> None:
        self.placement = placement
        self._name = name
        self._started: Counter[str] = Counter()  # by worker
        self._resting: dict[str, Any] = {}  # Ray's handles by worker

    def begin(self, actors: Mapping[str, Needs]) -> None:
        """Starts actors before they are taken, and gives them the room that is held for them. actors: by worker."""
        self._resting = {worker: self._start(worker, needs) for worker, needs in actors.items()}
        self.placement.release()  # another run may wait for the room, too

    def take(self, worker: str, needs: Needs) -> Any:
        """Returns the handle of an actor for a worker: of one that rests, or of a new one."""
        return self._resting.pop(worker, None) or self._start(worker, needs)

    def _start(self, worker: str, needs: Needs) -> Any:
        number = self._started[worker]
        self._started[worker] += 1
        # Ray must not restart it or run its tasks again: the pool does that, and knows which jobs are suspect.
        actor = actor_class(worker.rpartition("-")[0]).options(
            name=f"{self._name}/{worker}" + (f".{number}" if number else ""),  # Ray may still hold that of a dead one
            max_restarts=0,
            max_task_retries=0,
            **self.placement.options(worker, needs),
        )
        return actor.remote(process)

    def rest(self, workers: Sequence[Worker]) -> None:
        """Takes back the actors of workers whose run is over, and ends those that another run must not have."""
        there = [worker for worker in workers if worker.node_id]  # for others one might wait for ever
        busy = set(_not_after([reference for worker in there for reference in worker.calls], END_S))
        asked = {worker.name: worker.actor.rest.remote() for worker in there if not busy & worker.calls.keys()}
        late = set(_not_after(list(asked.values()), REST_S))
        kept = {name for name, answer in asked.items() if answer not in late and _is_true(answer)}
        end(worker for worker in workers if worker.name not in kept)
        self._resting |= {worker.name: worker.actor for worker in workers if worker.name in kept}


def end(workers: Iterable[Worker]) -> None:
    for worker in workers:
        ray.kill(worker.actor)


def _not_after(references: list[Any], seconds: float) -> list[Any]:
    """Waits for answers, and returns the references to those that are not there after so many seconds."""
    return ray.wait(references, num_returns=len(references), timeout=seconds)[1] if references else []


def _is_true(answer: Any) -> bool:
    try:
        return bool(ray.get(answer))
    except RayError:  # it has died
        return False
