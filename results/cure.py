"""What mostly helps where something in a run was not finite."""

from __future__ import annotations

from collections.abc import Mapping

from results.keys import Value
from results.texts import written


def of_divergence(keys: Mapping[str, Value]) -> str:
    """Returns it in terms of the scenario's own keys, without what the scenario does already.

    keys: its values by dotted path.
    """
    found = [f"a smaller local.lr than {written(keys['local.lr'])}" if "local.lr" in keys else "a smaller local.lr"]
    if not keys.get("local.lr.warmup"):
        found.append("a warm-up of it")
    if "clip_norm" not in str(keys.get("local.gradients")):
        found.append("clip_norm among local.gradients")
    for key in ("algorithm.server_lr", "algorithm.server.lr"):
        rate = keys.get(key)
        if isinstance(rate, int | float) and rate > 1:
            found.append(f"a smaller {key} than {written(rate)}")
    return f"{', '.join(found[:-1])} or {found[-1]}" if len(found) > 1 else found[0]
