"""Run as a program: starts actors that have shares of GPUs, and prints what each of them was given, as JSON."""

import json
import os
import sys
import time
from dataclasses import asdict
from functools import partial
from typing import Any


def given(host: Any) -> dict[str, Any]:
    """What an actor was given. It runs in the actor."""
    import ray

    node = ray.get_runtime_context().get_node_id()
    return {**asdict(host._worker), "node": node, "environment": os.environ.get("CUDA_VISIBLE_DEVICES")}


def main(address: str, actors: int, share: float) -> None:
    import ray

    from actors import Group, Needs
    from actors.actors import Actors
    from actors.cluster import RayPool
    from actors.connection import connect
    from actors.placement import Demand, reserved
    from raysim.workers.device import open_device

    connect([], address)
    group = Group("client", partial(open_device, share), actors, Needs(gpus=share))
    with reserved(Demand({f"client-{number}": group.needs for number in range(actors)}, 30.0)) as placement:
        started = Actors(f"test-{time.time_ns()}", placement)
        started.begin({f"client-{number}": group.needs for number in range(actors)})
        pool = RayPool(started)
        pool.start(group)
        workers = pool._crews["client"].workers
        found = ray.get([worker.actor.__ray_call__.remote(given) for worker in workers])
        pool.close()
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
