"""raysim: a Ray-parallel simulator of federated learning in virtual time.

Load a scenario with `load_scenario` and run it with `run`, which returns a `Result` with the run's tables and model;
`load` reads the tables of many runs:

    import raysim

    scenario = raysim.load_scenario("scenarios/quickstart.yaml", ["run.rounds=100"])
    result = raysim.run(scenario, inline=True)
    print(result.pandas("evaluations"))
"""

from raysim.beside import require_own_packages
from raysim.pressed import told_in_a_line

require_own_packages()  # before anything imports them

with told_in_a_line():  # it takes a second
    from raysim.errors import BadInput, CannotGoOn, RaysimError, RunFailed, ScenarioError, StopRun
    from raysim.forking import fork
    from raysim.result import Result
    from raysim.resumption import resume
    from raysim.runner import run
    from raysim.scenario import Scenario, load_scenario, parse_scenario
    from raysim.sweep import Plan, load_sweep, run_all
    from results import Runs, load

__all__ = [
    "BadInput",
    "CannotGoOn",
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
]

__version__ = "0.1.0"  # the package's metadata take it from here, so a checkout that is not installed has it too
