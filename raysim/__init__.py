"""raysim: a Ray-parallel simulator of federated learning in virtual time.

Load a scenario with `load_scenario` and run it with `run`, which returns a `Result` with the run's tables and model;
`load` reads the tables of many runs:

    import raysim

    scenario = raysim.load_scenario("scenarios/quickstart.yaml", ["run.rounds=100"])
    result = raysim.run(scenario, inline=True)
    print(result.pandas("evaluations"))
"""

from raysim.parts.errors import BadInput, CannotGoOn, RaysimError, RunFailed, ScenarioError, StopRun
from raysim.runs.fork import fork
from raysim.runs.place import session, shutdown
from raysim.runs.result import Interrupted, Result
from raysim.runs.run import resume, run
from raysim.scenario import Scenario, load_scenario, parse_scenario
from raysim.sweep import Plan, load_sweep, run_all
from raysim.version import __version__
from results import Runs, load

__all__ = [
    "BadInput",
    "CannotGoOn",
    "Interrupted",
    "Plan",
    "RaysimError",
    "Result",
    "RunFailed",
    "Runs",
    "Scenario",
    "ScenarioError",
    "StopRun",
    "__version__",
    "fork",
    "load",
    "load_scenario",
    "load_sweep",
    "parse_scenario",
    "resume",
    "run",
    "run_all",
    "session",
    "shutdown",
]
