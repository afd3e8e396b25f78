"""The jobs in raysim, on Ray with two client actors. `--set` replaces keys of the scenario, such as its algorithm."""

import argparse
from pathlib import Path

import numpy as np
from jobs import JOBS, report

import raysim

HERE = Path(__file__).parent


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("job", choices=JOBS)
    arguments.add_argument("--root", required=True, help="folder that holds FashionMNIST/raw/*.gz")
    arguments.add_argument("--rounds", type=int, help="default: the job's own")
    arguments.add_argument("--set", action="append", default=[], metavar="KEY.PATH=VALUE", dest="overrides")
    arguments.add_argument("--inline", action="store_true", help="one process, without Ray")
    arguments.add_argument("--local", type=int, help="so many worker processes, without Ray")
    arguments.add_argument("--out", default="runs")
    given = arguments.parse_args()
    rounds = JOBS[given.job].rounds if given.rounds is None else given.rounds
    overrides = [f"data.root={given.root}", f"run.rounds={rounds}", *given.overrides]
    scenario = raysim.load_scenario(HERE / f"{given.job}.yaml", overrides)
    result = raysim.run(scenario, out=given.out, inline=given.inline, local=given.local)
    steps, evaluations = result.pandas("steps"), result.pandas("evaluations")
    laps = np.diff(steps.groupby("round", observed=True).elapsed_s.max(), prepend=0.0)
    laps[-1] += result.info["seconds"]["loop"] - laps.sum()  # the last evaluation, and fetching the model
    last = evaluations[(evaluations.subject == "global") & (evaluations.metric == "accuracy")].value.iloc[-1]
    processes = 1 if given.inline else given.local or scenario.resources.client_actors
    packages = ["raysim"] if given.inline or given.local else ["raysim", "ray"]
    used = result.info["totals"]["used"]
    report("raysim", JOBS[given.job], processes, laps.tolist(), float(last), packages, used)


main()
