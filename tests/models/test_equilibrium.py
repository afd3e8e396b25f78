"""Deep equilibrium layers: their fixed points, their gradients, the models that have them, and what tables say."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from conftest import Simulate, digits, override
from torch import Tensor, nn

from raysim import ScenarioError, parse_scenario
from raysim.local import Local
from raysim.local.net import Net
from raysim.local.samples import Samples
from raysim.local.train import train
from raysim.models import DEQMLP, Anderson, DEQResNet, DEQTransformer, Iteration
from raysim.models.build import initialise
from raysim.models.equilibrium import Equilibrium, HeldDropout, Solves
from raysim.models.fixed_point import mixture, solve
from raysim.models.projection import BoundedLinear, project_rows
from raysim.models.solver import Solver
from raysim.rng import generator

EXACT = {"tolerance": 1e-6, "max_iterations": 200}
SOLVERS: list[Solver] = [Iteration(**EXACT), Anderson(**EXACT), Anderson(**EXACT, history=2, ridge=0.0, damping=0.5)]
CPU = torch.device("cpu")


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


class Cell(nn.Module):
    """g(z, x) = tanh(B z + C x), a contraction."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.b = nn.Parameter(0.6 * torch.linalg.qr(draw(width, width))[0])
        self.c = nn.Parameter(draw(width, width, seed=1))

    def forward(self, z: Tensor, x: Tensor) -> Tensor:
        return torch.tanh(z @ self.b.T + x @ self.c.T)


class Scalar(nn.Module):
    """g(z) = ReLU(B z + b) with B = 1/2 and b = 1."""

    def __init__(self) -> None:
        super().__init__()
        self.b = nn.Parameter(torch.tensor(0.5))
        self.a = nn.Parameter(torch.tensor(1.0))

    def forward(self, z: Tensor, x: Tensor) -> Tensor:
        return torch.relu(self.b * z + self.a)


# --- fixed points -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("scale", [0.0, 1.0, 1e4])
def test_a_contraction_s_fixed_point_is_found_from_anywhere(solver: Solver, scale: float) -> None:
    g, x = Cell(), draw(4, 6)
    expected = torch.zeros(4, 6)
    for _ in range(200):
        expected = g(expected, x).detach()
    found = solve(lambda z: g(z, x), scale * draw(4, 6, seed=2), solver)
    torch.testing.assert_close(found.z, expected, atol=2e-5, rtol=0)
    assert found.converged.all() and (found.residual <= solver.tolerance).all()
    torch.testing.assert_close((g(found.z, x) - found.z).norm(dim=1), torch.zeros(4), atol=1e-5, rtol=0)


def test_anderson_s_step_is_exact_on_a_line() -> None:
    """g(z) = z/2 + 1 seen at 0 and 1: steps 1 and 1/2, coefficients -1 and 2, and -1 * 1 + 2 * 1.5 = 2 = g(2)."""
    points, steps = torch.tensor([[[0.0], [1.0]]]), torch.tensor([[[1.0], [0.5]]])
    assert mixture(points, steps, ridge=0.0, damping=1.0).tolist() == [[2.0]]
    assert mixture(points, steps, ridge=0.0, damping=0.5).tolist() == [[2.0]]  # 2 is where the step is zero
    # With a ridge of 1 they are 1/3 and 2/3: 1/3 + 2/3 * 1.5 and, of half the steps, 1/3 * 0.5 + 2/3 * 1.25.
    assert mixture(points, steps, ridge=1.0, damping=1.0).item() == pytest.approx(4 / 3)
    assert mixture(points, steps, ridge=1.0, damping=0.5).item() == pytest.approx(1.0)
    solver = Anderson(history=2, ridge=0.0, tolerance=1e-6)
    found = solve(lambda z: z / 2 + 1, torch.zeros(1, 1), solver)
    assert (found.z.item(), found.iterations.item()) == (2.0, 3)


def test_a_ridge_draws_coefficients_to_their_mean() -> None:
    """Of steps 1 and 1/2 and ridge 1: a_1 + a_2 = 1 minimising (a_1 + a_2/2)^2 + a_1^2 + a_2^2, so a = (1/3, 2/3)."""
    points, steps = torch.tensor([[[0.0], [1.0]]]), torch.tensor([[[1.0], [0.5]]])
    assert mixture(points, steps, ridge=1.0, damping=1.0).item() == pytest.approx(1 / 3 * 1 + 2 / 3 * 1.5)


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_anderson_mixes_alike_at_all_scales(factor: float) -> None:
    points, steps = draw(2, 5, 8), draw(2, 5, 8, seed=1)
    scaled = mixture(factor * points, factor * steps, 1e-4, 1.0)
    torch.testing.assert_close(scaled, factor * mixture(points, steps, 1e-4, 1.0), rtol=1e-3, atol=1e-4 * factor)


def test_anderson_takes_fewer_iterations_than_plain_ones() -> None:
    eigenvalues, x = torch.linspace(-0.95, 0.95, 32), draw(3, 32)
    settings = {"tolerance": 1e-4, "max_iterations": 500}
    plain, anderson = (
        solve(lambda z: eigenvalues * z + x, torch.zeros(3, 32), solver)
        for solver in (Iteration(**settings), Anderson(**settings))
    )
    assert plain.converged.all() and anderson.converged.all()
    assert (3 * anderson.iterations < plain.iterations).all()


@pytest.mark.parametrize("solver", [Iteration(tolerance=1e-4), Anderson(tolerance=1e-4)])
def test_a_sample_is_solved_as_if_it_were_alone(solver: Solver) -> None:
    """Though others need more iterations: factors 0.1 and 0.7, and one that diverges."""
    factors = torch.tensor([[0.1], [0.7], [3.0]])
    together = solve(lambda z: factors * z + 1, torch.zeros(3, 4), solver)
    for i in range(3):
        alone = solve(lambda z, i=i: factors[i] * z + 1, torch.zeros(1, 4), solver)
        assert torch.equal(together.z[i], alone.z[0]) and together.iterations[i] == alone.iterations[0]
    assert together.iterations[0] < together.iterations[1]


def test_what_does_not_converge_is_told_and_stays_finite() -> None:
    for solver in (Iteration(max_iterations=300), Anderson(max_iterations=300)):
        found = solve(lambda z: torch.exp(z * z) - 2.0, torch.full((1, 2), 3.0), solver)
        assert not found.converged.any() and found.iterations.item() == 300
        assert found.z.isfinite().all()
    turning = solve(lambda z: z.flip(1) * torch.tensor([1.0, -1.0]) + 1.0, torch.zeros(1, 2), Iteration())
    assert turning.iterations.item() == 20 and turning.residual.item() > 0.01 and not turning.converged.item()


def test_images_may_be_channels_last_and_stay_so() -> None:
    start = draw(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    weights = torch.tensor([0.1, 0.5, -0.6])[:, None, None]
    for memory_format in (torch.channels_last, torch.contiguous_format):
        found = solve(lambda z: weights * z + 1, start.contiguous(memory_format=memory_format), Anderson())
        assert found.z.is_contiguous(memory_format=torch.channels_last)
        torch.testing.assert_close(found.z, (1 / (1 - weights)).expand(2, 3, 4, 5), atol=5e-3, rtol=0)


# --- gradients --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("backward", "slope", "shift"), [("implicit", 4.0, 2.0), ("jacobian_free", 2.0, 1.0)])
def test_gradients_on_a_line(backward: Any, slope: float, shift: float) -> None:
    """z = ReLU(z/2 + 1) = 2. Exactly dz/dB = z/(1 - B) = 4 and dz/db = 1/(1 - B) = 2; of one application 2 and 1."""
    layer = Equilibrium(Scalar(), Anderson(**EXACT), backward, "zeros")
    z = layer(torch.zeros(1, 1))
    z.backward(torch.ones(1, 1))
    assert z.item() == pytest.approx(2.0, abs=1e-5)
    assert layer.g.b.grad.item() == pytest.approx(slope, abs=1e-4)
    assert layer.g.a.grad.item() == pytest.approx(shift, abs=1e-4)


def unrolled(g: nn.Module, x: Tensor, steps: int) -> Tensor:
    z = torch.zeros_like(x)
    for _ in range(steps):
        z = g(z, x)
    return z


@pytest.mark.parametrize("solver", SOLVERS)
def test_implicit_gradients_are_those_of_many_iterations(solver: Solver) -> None:
    g, weights = Cell(), draw(4, 6, seed=3)
    x = draw(4, 6).requires_grad_()
    leaves = [g.b, g.c, x]
    expected = torch.autograd.grad((unrolled(g, x, 100) * weights).sum(), leaves)
    found = torch.autograd.grad((Equilibrium(g, solver, "implicit", "zeros")(x) * weights).sum(), leaves)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


def test_jacobian_free_gradients_are_those_of_the_last_application() -> None:
    g, x = Cell(), draw(4, 6).requires_grad_()
    z = Equilibrium(g, Anderson(**EXACT), "jacobian_free", "zeros")(x)
    found = torch.autograd.grad(z.square().sum(), [g.b, g.c, x])
    once = g(unrolled(g, x, 100).detach(), x)
    for one, other in zip(found, torch.autograd.grad(once.square().sum(), [g.b, g.c, x]), strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("backward", ["implicit", "jacobian_free"])
def test_what_is_kept_for_gradients_does_not_grow_with_the_iterations(backward: Any) -> None:
    def kept(compute: Callable[[Tensor], Tensor]) -> int:
        sizes: list[int] = []
        with torch.autograd.graph.saved_tensors_hooks(lambda t: sizes.append(t.numel()) or t, lambda t: t):
            compute(draw(4, 6)).sum().backward()
        return sum(sizes)

    g = Cell()
    few, many = (Equilibrium(g, Anderson(tolerance=1e-20, max_iterations=k), backward, "zeros") for k in (6, 50))
    once = kept(lambda x: g(torch.zeros_like(x), x))
    assert 0 < kept(few) == kept(many) <= 2 * once
    assert many.solved.iterations > 5 * few.solved.iterations
    assert kept(lambda x: unrolled(g, x, 50)) > 40 * once


def test_gradients_do_not_depend_on_their_scale() -> None:
    """Those of a mean loss are small, and an adjoint solve must not take that for converged."""
    g, x = Cell(), draw(4, 6)
    layer = Equilibrium(g, Anderson(**EXACT), "implicit", "zeros")
    one, small = (torch.autograd.grad(layer(x).sum() * scale, [g.b])[0] for scale in (1.0, 1e-6))
    torch.testing.assert_close(small * 1e6, one, rtol=1e-3, atol=1e-4)


# --- the layer --------------------------------------------------------------------------------------------------------


def test_a_sample_that_comes_again_starts_where_its_solve_ended() -> None:
    layer, x = Equilibrium(Cell(), Anderson(tolerance=1e-5, max_iterations=50), "jacobian_free", "last"), draw(6, 6)

    def iterations(*rows: int) -> int:
        layer.solved = Solves()
        if layer.memory is not None:
            layer.memory.places = torch.tensor(rows)
        torch.testing.assert_close(layer(x[list(rows)]).detach(), expected[list(rows)], atol=1e-4, rtol=0)
        return layer.solved.iterations

    expected = layer(x).detach()
    cold = [iterations(row) for row in range(6)]
    assert [iterations(row) for row in range(6)] == cold  # nobody said that they come again
    layer.remember(6)
    assert iterations(0, 1, 2) == sum(cold[:3])
    assert iterations(2, 0) == 2
    assert iterations(5, 1) == 1 + cold[5]
    layer.remember(0)
    assert iterations(2, 0) == cold[2] + cold[0]


def test_where_solves_start_can_be_seen_after_one_iteration() -> None:
    def output(start: Any) -> Tensor:
        model = DEQMLP(width=12, hidden=8, start=start, solver=Iteration(max_iterations=1))
        return initialise(model, (6,), 3, 0)(draw(4, 6)).detach()

    zeros, injection, last = map(output, ("zeros", "injection", "last"))
    assert not zeros.allclose(injection)
    assert last.equal(injection)


def test_epochs_after_the_first_take_fewer_iterations_where_solves_start_at_the_last(simulate: Simulate) -> None:
    """Of three epochs with a small rate; and the losses are those of other starts, to the tolerance."""
    found = {}
    for start in ("injection", "last"):
        model = {"name": "deq_mlp", "width": 16, "hidden": 8, "start": start}
        raw = digits(model=model, local={"lr": 0.01, "epochs": 3, "batch_size": 16}, run__rounds=2)
        found[start] = simulate(raw).pandas("updates").query("status == 'used'")
    assert (found["last"].solver_iterations < 0.9 * found["injection"].solver_iterations).all()
    assert found["last"].loss_after.to_numpy() == pytest.approx(found["injection"].loss_after.to_numpy(), rel=0.02)


def test_nothing_is_remembered_after_training() -> None:
    net = Net(initialise(DEQMLP(width=12, hidden=8, start="last"), (6,), 3, 0), (), "cross_entropy", CPU)
    samples = Samples.of(draw(20, 6), torch.arange(20) % 3)
    train(net, net.model(), samples, Local(lr=0.1, epochs=2, batch_size=5), generator(0, "test"))
    assert net.module.equilibrium.memory is None


def test_of_residuals_the_largest_is_told() -> None:
    few, many = Solves(1, 3, 0, 0.5), Solves(2, 5, 1, 0.1)
    assert few.plus(many) == many.plus(few) == Solves(3, 8, 1, 0.5)


@pytest.mark.parametrize("backward", ["implicit", "jacobian_free"])
def test_solves_are_counted_a_sample_at_a_time(backward: Any) -> None:
    x = torch.tensor([[0.0], [1.0], [2.0]])
    layer = Equilibrium(Scalar(), Iteration(tolerance=1e-3, max_iterations=5), backward, "injection")
    layer(x).sum().backward()
    forward = {"jacobian_free": 3, "implicit": 6}[backward]
    assert layer.solved.solves == forward
    # From 2 it is there at once; from 0 and 1 the error halves five times, and so does the adjoint's.
    assert layer.solved.unconverged == forward - 1
    assert layer.solved.iterations == 1 + 5 * (forward - 1)
    assert 1e-3 < layer.solved.residual < 0.1


def test_a_fixed_point_at_zero_is_approached() -> None:
    """g(z) = z/2: elsewhere the relative residual is 1, so that no solve converges; its last point is the best."""
    found = solve(lambda z: z / 2, torch.ones(1, 1), Iteration(max_iterations=20))
    assert (found.z.item(), found.converged.item()) == (0.5**20, False)


def test_a_history_must_fill_before_the_solve_ends() -> None:
    with pytest.raises(ScenarioError, match="history must be less than max_iterations, 5, or nothing is ever mixed"):
        parse_scenario(digits(model={**MODEL, "solver": {"name": "anderson", "max_iterations": 5}}))


def test_without_gradients_nothing_is_recorded_and_the_result_is_the_same() -> None:
    layer, x = Equilibrium(Cell(), Anderson(), "implicit", "zeros").eval(), draw(4, 6)
    with torch.no_grad():
        silent = layer(x)
    recorded = layer(x)
    assert not silent.requires_grad and recorded.requires_grad
    assert torch.equal(silent, recorded)


class Masked(nn.Module):
    """g(z, x) = mask * (z/4 + x), kept values being doubled: the fixed points are 0 and 4x, and 4/3 x in eval mode."""

    def __init__(self) -> None:
        super().__init__()
        self.dropout = HeldDropout(0.5)

    def forward(self, z: Tensor, x: Tensor) -> Tensor:
        return self.dropout(z / 4 + x)


def test_dropout_has_one_mask_a_solve() -> None:
    """Else there would be no fixed point."""
    solver, x = Iteration(tolerance=1e-6, max_iterations=50), torch.ones(9, 9)
    layer = Equilibrium(Masked(), solver, "jacobian_free", "zeros")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        one, other = layer(x), layer(x)
    assert layer.solved.unconverged == 0
    for z in (one, other):
        torch.testing.assert_close(z, torch.where(z > 1, 4.0, 0.0), atol=1e-4, rtol=0)
    assert not torch.equal(one > 1, other > 1)
    torch.testing.assert_close(layer.eval()(x), torch.full((9, 9), 4 / 3), atol=1e-4, rtol=0)


# --- the bound --------------------------------------------------------------------------------------------------------


def test_rows_are_projected_on_the_ball() -> None:
    """By hand: of (0.9, -0.6, 0.1) all sizes lose 0.25. A row inside stays, which on a sphere it would not."""
    matrix = torch.tensor([[0.9, -0.6, 0.1], [-0.3, 0.2, 0.0], [0.0, 0.0, 5.0], [0.0, 0.0, 0.0]])
    expected = torch.tensor([[0.65, -0.35, 0.0], [-0.3, 0.2, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    torch.testing.assert_close(project_rows(matrix, 1.0), expected)
    assert torch.equal(project_rows(matrix, 1.0)[1], matrix[1])
    assert project_rows(torch.tensor([[torch.nan, 1.0]]), 1.0).isnan().any()


def test_a_projection_is_the_nearest_point() -> None:
    matrix = draw(20, 9)
    projected = project_rows(matrix, 0.7)
    assert projected.abs().sum(1).max() <= 0.7 + 1e-6
    inside = draw(500, 1, 9, seed=1)
    inside = 0.7 * inside / inside.abs().sum(2, keepdim=True)
    assert ((matrix - projected).norm(dim=1) <= (matrix - inside).norm(dim=2) + 1e-6).all()


def trained(kappa: float | None, part: str | None = None) -> tuple[Net, Tensor]:
    """After ten large steps, and the weights B before."""
    model = DEQMLP(width=12, hidden=8, kappa=kappa)
    net = Net(initialise(model, (6,), 3, 0), model.personal, "cross_entropy", CPU)
    before = net.module.equilibrium.g.linear.weight.detach().clone()
    samples = Samples.of(draw(20, 6), torch.arange(20) % 3)
    train(net, net.model(), samples, Local(lr=2.0, steps=10, batch_size=5), generator(0, "test"), part=part)
    return net, before


def test_training_keeps_the_bound_after_each_step() -> None:
    net, before = trained(0.5)
    layer = net.module.equilibrium.g.linear
    assert isinstance(layer, BoundedLinear)
    assert not torch.equal(layer.weight, before)
    assert layer.weight.abs().sum(1).max() <= 0.5 + 1e-6
    free, _ = trained(None)
    assert free.module.equilibrium.g.linear.weight.abs().sum(1).max() > 1
    assert net.layout.flatten(net.module).equal(net.w)


def test_a_part_without_the_bounded_weights_leaves_them() -> None:
    net, before = trained(0.5, part="personal")
    assert torch.equal(net.module.equilibrium.g.linear.weight, before)


# --- models and runs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backward", ["jacobian_free", "implicit"])
@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (DEQMLP(width=16, hidden=8), (1, 8, 8)),
        (DEQMLP(width=16, hidden=8, activation="tanh", start="zeros", kappa=None), (1, 8, 8)),
        (DEQResNet(), (1, 8, 8)),
        (DEQTransformer(width=8, heads=2, layers=2), (5,)),
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
    assert net.take_solves().solves == (4 if backward == "implicit" else 2)
    assert net.take_solves() == Solves()


MODEL = {"name": "deq_mlp", "width": 24, "hidden": 16}


@pytest.mark.parametrize("algorithm", ["fedbuff", "decfedavg"])
def test_the_table_of_updates_says_how_solves_went(simulate: Simulate, algorithm: str) -> None:
    raw = digits(model=MODEL, algorithm=algorithm)
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


@pytest.mark.parametrize("subject", ["global", "client", "unseen", "peer"])
def test_evaluations_say_how_their_solves_went(simulate: Simulate, subject: str) -> None:
    """Of a solver that never converges, and of one that takes the iterations that it needs."""
    raw = digits(model=MODEL, algorithm="fedavg_ft", run__evaluate_clients="all", run__rounds=2)
    raw["data"] |= {"clients": 10, "local_test": 0.2, "unseen": 0.2}
    if subject == "peer":
        raw |= {"algorithm": "decfedavg", "topology": "ring", "world": {}}
        raw["data"] = {"name": "digits", "clients": 5, "partition": "iid"}

    def told(*words: str) -> tuple[Any, Any]:
        found = simulate(raw, *words).pandas("evaluations").query(f"subject == '{subject}'")
        values = {metric: of.value for metric, of in found.groupby("metric", observed=True)}
        return values["iterations"], values["unconverged"]

    iterations, unconverged = told()
    assert iterations.between(2, 15).all() and (unconverged == 0).all()
    never = "model.solver={name: iteration, max_iterations: 3, tolerance: 1.0e-9}"
    iterations, unconverged = told("--set", never)
    assert (iterations == 3).all() and (unconverged == 1).all()


def test_models_without_equilibrium_layers_say_nothing_of_solves(simulate: Simulate) -> None:
    updates = simulate(digits()).table("updates")
    for column in ("solver_iterations", "solver_residual", "unconverged"):
        assert updates[column].null_count == len(updates)
    assert set(simulate(digits()).pandas("evaluations").metric) == {"accuracy", "loss"}


def test_runs_have_the_same_bits_and_the_model_can_be_read(simulate: Simulate) -> None:
    raw = digits(model={**MODEL, "backward": "implicit"}, algorithm="fedavg", run__rounds=2, run__evaluate_every=2)
    one, other = simulate(raw), simulate(raw)
    assert one.digest == other.digest
    module = one.module()
    inputs = draw(3, 1, 8, 8)
    assert np.array_equal(module(inputs).detach(), other.module()(inputs).detach())
    assert module.equilibrium.g.linear.weight.abs().sum(1).max() <= 0.99 + 1e-5
