"""Deep equilibrium models in runs, and what tables say of their solves."""

from typing import Any

import pytest
import torch
from conftest import Simulate, digits, override
from equilibria import CPU, MODEL, draw

from raysim.local.net import Net
from raysim.models import DEQMLP, Broyden, DEQResNet, DEQTransformer
from raysim.models.build import initialise
from raysim.models.equilibrium import Solves


@pytest.mark.parametrize("backward", ["jacobian_free", "implicit", "conjugate_gradient"])
@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (DEQMLP(width=16, hidden=8), (1, 8, 8)),
        (DEQMLP(width=16, hidden=8, activation="tanh", start="zeros", kappa=None), (1, 8, 8)),
        (DEQResNet(), (1, 8, 8)),
        (DEQResNet(activation="relu"), (1, 8, 8)),
        (DEQTransformer(width=8, heads=2, layers=2), (5,)),
        (DEQTransformer(width=8, heads=2, layers=2, positions_in_last=False, solver=Broyden()), (5,)),
    ],
)
def test_every_parameter_of_a_model_gets_a_gradient(model: Any, shape: tuple[int, ...], backward: Any) -> None:
    model = model.model_copy(update={"backward": backward})
    net = Net(initialise(model, shape, 4, 0), model.personal, "cross_entropy", CPU)
    if isinstance(model, DEQTransformer):
        x, y = torch.arange(10).view(2, 5) % 4, torch.arange(10).view(2, 5) % 3
    else:
        x, y = draw(2, *shape), torch.tensor([0, 3])
    net.mode(training=True)
    _, gradients = net.gradients(x, y, net.parameters)
    named = {entry.name: gradient for entry, gradient in zip(net.layout.entries, gradients, strict=True)}
    assert [name for name, gradient in named.items() if not gradient.any()] == []
    assert net.take_solves().solves == (2 if backward == "jacobian_free" else 4)
    assert net.take_solves() == Solves()


@pytest.mark.parametrize("algorithm", ["fedbuff", "decfedavg"])
def test_the_table_of_updates_says_how_solves_went(simulate: Simulate, algorithm: str) -> None:
    raw = digits(model=MODEL, algorithm=algorithm, run__rounds=2, data__test_samples=50)
    if algorithm == "decfedavg":
        raw = override(raw, topology="ring", world={}, data__clients=5)
    updates = simulate(raw).pandas("updates").query("status == 'used'")
    assert updates.solver_iterations.between(1, 20).all()
    assert (updates.unconverged == 0).all() and updates.solver_residual.between(0, 1e-3).all()
    loose = simulate(raw, "--set", "model.solver={name: iteration, max_iterations: 2, tolerance: 1.0e-9}")
    updates = loose.pandas("updates").query("status == 'used'")
    assert (updates.solver_iterations == 2).all() and (updates.solver_residual > 1e-9).all()
    if algorithm == "fedbuff":
        assert (updates.unconverged == updates.samples_seen).all()


@pytest.mark.parametrize("subjects", [["global", "client", "unseen"], ["peer"]], ids=str)
def test_evaluations_say_how_their_solves_went(simulate: Simulate, subjects: list[str]) -> None:
    """One solver takes the iterations that it needs, and one never converges."""
    raw = digits(model=MODEL, algorithm="fedavg_ft", run__evaluate_clients="all", run__rounds=2)
    raw["data"] |= {"clients": 10, "local_test": 0.2, "unseen": 0.2, "train_samples": 300, "test_samples": 50}
    if subjects == ["peer"]:
        raw |= {"algorithm": "decfedavg", "topology": "ring", "world": {}}
        raw["data"] = {"name": "digits", "clients": 5, "partition": "iid", "train_samples": 300, "test_samples": 50}
    solver = "model.solver={name: iteration, max_iterations: 3, tolerance: 1.0e-9}"
    converging, never = (simulate(raw, *words).pandas("evaluations") for words in ((), ("--set", solver)))
    for subject in subjects:
        wanted = f"subject == '{subject}' and metric == "
        assert converging.query(f"{wanted}'iterations'").value.between(2, 15).all()
        assert set(converging.query(f"{wanted}'unconverged'").value) == {0}
        assert set(never.query(f"{wanted}'iterations'").value) == {3}
        assert set(never.query(f"{wanted}'unconverged'").value) == {1}


def test_models_without_equilibrium_layers_say_nothing_of_solves(simulate: Simulate) -> None:
    result = simulate(digits(run__rounds=2))
    updates = result.table("updates")
    for column in ("solver_iterations", "solver_residual", "unconverged"):
        assert updates[column].null_count == len(updates)
    assert set(result.pandas("evaluations").metric) == {"accuracy", "loss"}
