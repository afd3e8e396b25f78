"""raysim: a Ray-parallel simulator of federated learning in virtual time."""

from raysim.errors import RaysimError, RunFailed, ScenarioError, StopRun
from raysim.result import Result
from raysim.runner import run
from raysim.scenario import Scenario, load_scenario, parse_scenario
from raysim.sweep import Plan, load_sweep, run_all
from results import Runs, load

__all__ = [
    "Plan",
    "RaysimError",
    "Result",
    "RunFailed",
    "Runs",
    "Scenario",
    "ScenarioError",
    "StopRun",
    "load",
    "load_scenario",
    "load_sweep",
    "parse_scenario",
    "run",
    "run_all",
]
