"""The actors that a run started, by the names that Ray knows. A run that finds waiting ones starts none."""

from itertools import count
from typing import Any

import ray

_wait = count(700)


def own_actors() -> dict[str, float]:
    """Resources that no other run asks for, so that a run with them starts actors of its own, and ends no others."""
    return {"resources__wait_s": float(next(_wait))}


def actors_of(run: str) -> dict[str, str]:
    """The names of a run's actors that live, by what they are, such as client-1."""
    named = [actor["name"] for actor in ray.util.list_named_actors(all_namespaces=True)]
    return {name.rpartition("/")[2]: name for name in named if name.startswith(f"{run}-")}


def actor_of(run: str, what: str) -> Any:
    return ray.get_actor(actors_of(run)[what], namespace="raysim")
