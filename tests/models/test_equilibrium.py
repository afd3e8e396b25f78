"""Deep equilibrium layers: their gradients, where solves start, and what they remember."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from conftest import digits
from equilibria import EXACT, MODEL, SOLVERS, Cell, Scalar, draw
from torch import Tensor, nn

from raysim import ScenarioError, parse_scenario
from raysim.models import DEQMLP, Anderson, Iteration
from raysim.models.build import initialise
from raysim.models.equilibrium import Equilibrium, HeldDropout, Solves, solve_normal
from raysim.models.solver import Solver

# --- gradients --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("backward", "slope", "shift"),
    [("implicit", 4.0, 2.0), ("conjugate_gradient", 4.0, 2.0), ("jacobian_free", 2.0, 1.0)],
)
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


def test_conjugate_gradients_find_them_too() -> None:
    """To their tolerance, in fewer iterations than there are dimensions, and each sample on its own."""
    g, weights, x = Cell(), draw(4, 6, seed=3), draw(4, 6).requires_grad_()
    expected = torch.autograd.grad((unrolled(g, x, 100) * weights).sum(), [g.b, g.c, x])
    layer = Equilibrium(g, Anderson(**EXACT), "conjugate_gradient", "zeros")
    out = (layer(x) * weights).sum()
    layer.solved = Solves()
    for one, other in zip(torch.autograd.grad(out, [g.b, g.c, x]), expected, strict=True):
        assert (one - other).norm() < 2e-3 * other.norm()
    assert (layer.solved.solves, layer.solved.unconverged) == (4, 0)
    assert layer.solved.iterations <= 4 * 6
    alone = torch.autograd.grad((layer(x[:1]) * weights[:1]).sum(), x)[0][0]
    torch.testing.assert_close(alone, torch.autograd.grad((layer(x) * weights).sum(), x)[0][0], atol=1e-6, rtol=1e-5)


def test_conjugate_gradients_need_no_contraction() -> None:
    """J = diag(3, -2): u = gradient / (1 - J), where iterating u = J u + gradient would run away."""
    slopes, gradient = torch.tensor([[3.0, -2.0]]), torch.ones(1, 2)
    found = solve_normal(lambda u: (1 - slopes) * u, lambda u: (1 - slopes) * u, gradient)
    assert found.converged.all() and found.iterations.item() == 2
    torch.testing.assert_close(found.z, gradient / (1 - slopes), atol=1e-5, rtol=1e-5)


def test_jacobian_free_gradients_are_those_of_the_last_application() -> None:
    g, x = Cell(), draw(4, 6).requires_grad_()
    z = Equilibrium(g, Anderson(**EXACT), "jacobian_free", "zeros")(x)
    found = torch.autograd.grad(z.square().sum(), [g.b, g.c, x])
    once = g(unrolled(g, x, 100).detach(), x)
    for one, other in zip(found, torch.autograd.grad(once.square().sum(), [g.b, g.c, x]), strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(("backward", "most"), [("implicit", 2), ("conjugate_gradient", 3), ("jacobian_free", 2)])
def test_what_is_kept_for_gradients_does_not_grow_with_the_iterations(backward: Any, most: int) -> None:
    def kept(compute: Callable[[Tensor], Tensor]) -> int:
        sizes: list[int] = []
        with torch.autograd.graph.saved_tensors_hooks(lambda t: sizes.append(t.numel()) or t, lambda t: t):
            compute(draw(4, 6)).sum().backward()
        return sum(sizes)

    g = Cell()
    few, many = (Equilibrium(g, Anderson(tolerance=1e-20, max_iterations=k), backward, "zeros") for k in (6, 50))
    once = kept(lambda x: g(torch.zeros_like(x), x))
    assert 0 < kept(few) == kept(many) <= most * once
    assert many.solved.iterations > 3 * few.solved.iterations
    assert kept(lambda x: unrolled(g, x, 50)) > 40 * once


def test_gradients_do_not_depend_on_their_scale() -> None:
    """Those of a mean loss are small, and an adjoint solve must not take that for converged."""
    g, x = Cell(), draw(4, 6)
    layer = Equilibrium(g, Anderson(**EXACT), "implicit", "zeros")
    one, small = (torch.autograd.grad(layer(x).sum() * scale, [g.b])[0] for scale in (1.0, 1e-6))
    torch.testing.assert_close(small * 1e6, one, rtol=1e-3, atol=1e-4)


# --- the layer --------------------------------------------------------------------------------------------------------


def test_where_solves_start_can_be_seen_after_one_iteration() -> None:
    def output(start: Any) -> Tensor:
        model = DEQMLP(width=12, hidden=8, start=start, solver=Iteration(max_iterations=1))
        return initialise(model, (6,), 3, 0)(draw(4, 6)).detach()

    zeros, injection = map(output, ("zeros", "injection"))
    assert not zeros.allclose(injection)


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
