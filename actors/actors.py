"""The actors of workers on Ray. They outlive a pool, and the next one has them again."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import ray
from ray.exceptions import RayError

from actors.placement import Placement
from actors.pool import Needs
from actors.worker import Worker, actor_class, process

END_S = 2.0  # seconds that workers may take to end what they do, when a run is over
REST_S = 7.0  # seconds that they may then take to let go of the run


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
        self.release()

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

    def release(self) -> None:
        """Gives away the room that is held for the actors."""
        self.placement.release()
        self.placement = self.placement._replace(group=None)


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
