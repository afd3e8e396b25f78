"""A run of any algorithm with a server: clients' own models are evaluated, and some take no part."""

from typing import Any

from conftest import Raw, digits

from raysim.laws.subject import SMALL

ON_RAY = ("fedavg", "fedbuff", "feddle", "ditto", "scaffold")  # one of each kind; the others' values are pickled only


def with_own_models(algorithm: str, **more: Any) -> Raw:
    data: Raw = {"data__local_test": 0.2, "data__validation": 0.1, "data__unseen": 0.2, "run__evaluate_clients": "all"}
    model = {"name": "mlp", "hidden": [16], "personal": ["head"]}
    if algorithm == "fedat":
        more["world"] = SMALL["tiered"]["world"] | {"dispatch": {"per_tier": 3, "tiers": 2}}
    return digits(algorithm=algorithm, model=model, server_data={"name": "in_domain", "samples": 100}, **data, **more)
