"""Runs on Ray whose bits must be those of this process.

That the number of actors changes none is tried once for each family, in `tests/engine`.
"""

from pathlib import Path

from conftest import Raw

import raysim
from raysim.scenario import Scenario


def same_on_ray(scenario: Raw | Scenario, out: Path) -> raysim.Result:
    """Returns a scenario's run on Ray, whose digest must be that of its run in this process.

    With `resources` as by default, it finds two client actors that wait, and takes a second.
    """
    inline, on_ray = (raysim.run(scenario, out=out / name, inline=name == "inline") for name in ("inline", "ray"))
    assert on_ray.digest == inline.digest
    return on_ray
