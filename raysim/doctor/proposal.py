"""Proposes resources, from the needs of one client and the nodes' capacity, and estimates how long a run then takes."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from actors import OnNode
from raysim.doctor.measurement import Measured, Planned
from raysim.doctor.node import Node
from raysim.scenario import Scenario
from raysim.scenario.resources import Resources
from raysim.terms import Buffer

JOB_S = 0.02  # seconds that a job should take at least, to be worth its call
CALL_S = 0.001  # seconds that a call takes, for the actor and for the scheduler
SPARE = 0.8  # share of memory that actors may fill; the rest is for needs that were not measured
NEARLY = 1.05  # how much longer a run may take before other resources are proposed
MOST_PER_GPU = 8  # actors; more of them slow each other down


class Proposal(NamedTuple):
    """Resources, and what a run with them is expected to take."""

    client_actors: int
    gpus_per_client: float
    chunk: int
    seconds: float
    actors_bytes: int  # memory of all client actors together, on all nodes

    @property
    def settings(self) -> list[str]:
        """Returns them as options of the command line."""
        shown = {"client_actors": self.client_actors, "gpus_per_client": self.gpus_per_client, "chunk": self.chunk}
        return [f"--set resources.{key}={value:g}" for key, value in shown.items()]


def as_asked(scenario: Scenario, measured: Measured) -> Proposal:
    """Returns the resources that a scenario asks for. Of a range of client actors, it takes the least number."""
    asked = scenario.resources
    return _with(scenario, measured, asked.clients(scenario.in_flight)[0], asked.gpus_per_client, asked.chunk)


def propose(scenario: Scenario, measured: Measured, places: Sequence[OnNode[Node]]) -> Proposal:
    """Returns the resources with which the run ends soonest, or those that are asked for if they are nearly as good.

    A job gets enough clients to be worth its call, as long as each step has a job for each actor. More actors than
    clients that train at a time, or than fit into the memory of nodes and GPUs, are of no use.
    """
    asked, at_once = scenario.resources, max(1, _per_step(scenario, measured.planned))
    per_gpu = _per_gpu(measured, places) if asked.gpus_per_client else 0
    room = sum(_room(asked, measured, place, per_gpu) for place in places)
    actors = max(1, min(room, scenario.in_flight, at_once if _waits(scenario) else room))
    chunk = min(math.ceil(JOB_S / max(measured.client_s, 1e-9)), math.ceil(at_once / actors))
    share = math.floor(1e4 / per_gpu) / 1e4 if per_gpu else 0.0
    proposal, present = _with(scenario, measured, actors, share, max(1, chunk)), as_asked(scenario, measured)
    fits = present.client_actors <= room and present.gpus_per_client >= share
    return present if fits and present.seconds <= NEARLY * proposal.seconds else proposal


def _per_gpu(measured: Measured, places: Sequence[OnNode[Node]]) -> int:
    """Returns how many actors share a GPU, so that they fit into the smallest one that there is."""
    sizes = [gpu.total_bytes for place in places if place.answer for gpu in place.answer.gpus]
    if not sizes or not measured.usage.gpu_bytes:
        return 1
    return max(1, min(MOST_PER_GPU, int(SPARE * min(sizes) / measured.usage.gpu_bytes)))


def _room(asked: Resources, measured: Measured, place: OnNode[Node], per_gpu: int) -> int:
    """Returns how many client actors a node has room for."""
    if place.answer is None or not asked.clients_on.allow(place.labels):
        return 0
    needs = {"CPU": asked.cpus_per_client, "GPU": 1 / per_gpu if per_gpu else 0.0, **asked.clients_on.custom}
    counts = [int(place.resources.get(kind, 0.0) / need + 1e-9) for kind, need in needs.items() if need]
    memory = SPARE * place.answer.free_memory_bytes - measured.usage.data_bytes
    return min([*counts, place.answer.cpus, max(0, int(memory / measured.usage.actor_bytes))])


def _with(scenario: Scenario, measured: Measured, actors: int, share: float, chunk: int) -> Proposal:
    return Proposal(
        client_actors=actors,
        gpus_per_client=share,
        chunk=chunk,
        seconds=_seconds(scenario, measured, actors, chunk),
        actors_bytes=actors * measured.usage.actor_bytes,
    )


def _seconds(scenario: Scenario, measured: Measured, actors: int, chunk: int) -> float:
    """Returns how long a run takes if actors do not slow each other down."""
    planned = measured.planned
    per_step = _per_step(scenario, planned)
    jobs = max(1, math.ceil(per_step / chunk))  # of a step
    calls = planned.steps * jobs * CALL_S
    if _waits(scenario):  # the clients of one step train while nothing else does
        training = planned.steps * math.ceil(jobs / actors) * (min(chunk, per_step) * measured.client_s + CALL_S)
    else:
        training = (planned.trained * measured.client_s + calls) / actors
    stepping = planned.steps * (measured.step_s or 0.0)
    evaluating = planned.evaluations * (measured.evaluation_s or 0.0) / actors
    work = training + stepping if _waits(scenario) else max(training, stepping)
    return measured.start_s + max(work + evaluating, calls)


def _waits(scenario: Scenario) -> bool:
    """Whether the clients of a step train only once the step before is done."""
    if not scenario.has_server:
        return scenario.world.synchronous
    return not isinstance(scenario.central.trigger, Buffer)


def _per_step(scenario: Scenario, planned: Planned) -> int:
    """Returns how many clients, or peers, train for a step."""
    return math.ceil(planned.trained / planned.steps) if planned.steps else scenario.in_flight
