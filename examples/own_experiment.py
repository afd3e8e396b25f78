"""A custom experiment: how much accuracy do slow clients cost, with FedAvg and with FedBuff?

Twelve runs, compared over three seeds. Run it with `python examples/own_experiment.py FOLDER`; it takes less than
half a minute. Runs that FOLDER holds already are not run again.
"""

import sys
from pathlib import Path

import raysim

BASE = {
    "name": "slow-clients",
    "data": {"name": "digits", "clients": 200, "partition": {"name": "dirichlet_clients", "alpha": 1.0}},
    "model": {"name": "mlp", "hidden": [64]},
    "local": {"lr": 0.1, "epochs": 5, "batch_size": 32},
    "run": {"rounds": 100, "evaluate_every": 10},
}


def scenarios() -> list[raysim.Scenario]:
    """Returns a scenario for each algorithm with each delay and each seed."""
    return [
        raysim.parse_scenario({**BASE, "algorithm": algorithm, "seed": seed, "world": world(sigma)})
        for algorithm in ("fedavg", "fedbuff")
        for sigma in (2.0, 10.0)
        for seed in (0, 1, 2)
    ]


def world(sigma: float) -> dict[str, object]:
    """Returns a world in which ten clients are picked in each round, and updates arrive some rounds later."""
    return {"dispatch": {"per_round": 10}, "delay": {"name": "half_normal", "sigma": sigma}}


def main(out: Path) -> None:
    outcomes = raysim.run_all(scenarios(), out=out, inline=True)
    print(", ".join(sorted({outcome.status for outcome in outcomes})))
    runs = raysim.load(out)
    compared = runs.compare(
        by="algorithm",
        columns="world.delay.sigma",
        metric=["accuracy", "up_bytes"],
        reduce="mean_of_last_5",
        target=[("accuracy", 0.9)],
    )
    print(compared.to_string(index=False, float_format="%.4g"))
    (out / "comparison.csv").write_text(compared.to_csv(index=False))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs/slow-clients"))
