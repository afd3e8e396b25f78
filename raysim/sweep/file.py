"""Everything that a scenario file may hold, for the JSON Schema."""

from raysim.scenario import Scenario
from raysim.sweep.settings import Sweep


class ScenarioFile(Scenario):
    """A scenario file, of one run or, with a sweep, of several."""

    sweep: Sweep | None = None
    """Several runs of the scenario, for `raysim sweep`. null: one run."""
