"""What a run costs beside training, as counts that do not depend on the machine. They may fall, and must not grow.

Whoever raises a limit says why in the commit. What a change has gained is kept by lowering it.
"""

import pickle
from collections import Counter
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import Raw, digits
from torch.utils._python_dispatch import TorchDispatchMode

import raysim
from actors import InlinePool
from raysim.runs.execution import Execution

LIMITS = {
    # A round of six clients: two chunks of three, and the step. New vectors include the server's share.
    "server: jobs a round": 3,
    "server: vectors put or left a round": 5,
    "server: new vectors a client": 4.5,
    "server: calls of Ray a job": 2.3,
    # A round of six peers in a ring: all train, then all mix.
    "peers: jobs a round": 2,
    "peers: vectors put or left a round": 7,
    "peers: new vectors a peer": 3,
    "peers: calls of Ray a job": 2.3,
}
FEW, MANY = 4, 24  # rounds; the difference is free of the set-up
SERVER = digits(algorithm="fedavg", world={"dispatch": {"per_round": 6}, "delay": {"name": "none"}})
PEERS: Raw = {
    **digits(algorithm="decfedavg", topology={"name": "ring"}, world={}),
    "data": {"name": "digits", "clients": 6, "partition": "iid"},
}
FAMILIES = {"server": SERVER, "peers": PEERS}


def require(found: dict[str, float]) -> None:
    grown = [f"{what}: {value:.2f}, at most {LIMITS[what]}" for what, value in found.items() if value > LIMITS[what]]
    assert not grown, f"these costs have grown: {'; '.join(grown)}"


def scenario(family: str, rounds: int) -> raysim.Scenario:
    return raysim.parse_scenario({**FAMILIES[family], "run": {"rounds": rounds, "evaluate_every": 1000}})


class NewVectors(TorchDispatchMode):
    """Counts operations that make a new tensor as long as the model."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.length, self.count = length, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        given = {arg.untyped_storage().data_ptr() for arg in (*args, *(kwargs or {}).values()) if torch.is_tensor(arg)}
        if torch.is_tensor(made) and made.numel() == self.length:
            self.count += made.untyped_storage().data_ptr() not in given
        return made


@pytest.mark.parametrize("family", FAMILIES)
def test_jobs_values_and_copies_of_a_round(family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: Counter[str] = Counter()
    submit, put = InlinePool.submit, InlinePool.put

    def counting(self: InlinePool, *args: Any, **more: Any) -> Any:
        job = submit(self, *args, **more)
        seen["jobs"] += 1
        seen["bytes"] += sum(len(pickle.dumps(value.content, 5)) for value in job.values)
        return job

    def putting(self: InlinePool, content: Any) -> Any:
        seen["bytes"] += len(pickle.dumps(content, 5))
        return put(self, content)

    monkeypatch.setattr(InlinePool, "submit", counting)
    monkeypatch.setattr(InlinePool, "put", putting)
    parameters = raysim.run(scenario(family, 1), inline=True, out=tmp_path).info["parameters"]
    costs = []
    for rounds in (FEW, MANY):
        seen.clear()
        with NewVectors(parameters) as vectors:
            raysim.run(scenario(family, rounds), inline=True, out=tmp_path)
        costs.append((seen["jobs"], seen["bytes"] / (4 * parameters), vectors.count / 6))
    jobs, values, copies = ((many - few) / (MANY - FEW) for few, many in zip(*costs, strict=True))
    member = "client" if family == "server" else "peer"
    require(
        {
            f"{family}: jobs a round": jobs,
            f"{family}: vectors put or left a round": values,
            f"{family}: new vectors a {member}": copies,
        }
    )


@pytest.mark.ray
@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_calls_of_ray(family: str, tmp_path: Path, ray_room: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pool is in this process, as it is in the scheduler's, so what this process does is what that would do."""
    import ray

    from actors.actors import Actors
    from actors.cluster import RayPool
    from actors.placement import Placement

    seen: Counter[str] = Counter()

    def counted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(real)
        def call(*args: Any, **more: Any) -> Any:
            seen[name] += 1
            return real(*args, **more)

        return call

    monkeypatch.setattr("ray.actor.ActorMethod._remote", counted("calls", ray.actor.ActorMethod._remote))
    for name in ("get", "put"):
        monkeypatch.setattr(ray, name, counted("calls", getattr(ray, name)))
    monkeypatch.setattr(RayPool, "submit", counted("jobs", RayPool.submit))
    costs = []
    for rounds in (FEW, 5 * MANY):
        seen.clear()
        pool = RayPool(Actors(f"costs-{family}-{rounds}", Placement()))
        for _ in Execution(scenario(family, rounds), tmp_path / str(rounds))(pool):
            pass
        pool.close()
        costs.append((seen["jobs"], seen["calls"]))
    jobs, calls = (many - few for few, many in zip(*costs, strict=True))
    require({f"{family}: calls of Ray a job": calls / jobs})
