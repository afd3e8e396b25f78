"""Solvers of fixed points."""

import pytest
import torch
from equilibria import SOLVERS, Cell, draw

from raysim.models import Anderson, Broyden, Iteration
from raysim.models.equilibrium import solve
from raysim.models.solver import Solver, mixture


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


def test_broyden_s_second_step_is_exact_on_a_line() -> None:
    """g(z) = z/2 + 1: from 0 to 1; then the slope of g(z) - z is known to be -1/2, whose root is 2."""
    found = solve(lambda z: z / 2 + 1, torch.zeros(1, 1), Broyden(tolerance=1e-6))
    assert (found.z.item(), found.iterations.item()) == (2.0, 3)


@pytest.mark.parametrize("solver", [Iteration(tolerance=1e-4), Anderson(tolerance=1e-4), Broyden(tolerance=1e-4)])
def test_a_sample_is_solved_as_if_it_were_alone(solver: Solver) -> None:
    """Though others need more iterations: factors 0.1 and 0.7, and one that diverges."""
    factors = torch.tensor([[0.1], [0.7], [3.0]])
    together = solve(lambda z: factors * z + 1, torch.zeros(3, 4), solver)
    for i in range(3):
        alone = solve(lambda z, i=i: factors[i] * z + 1, torch.zeros(1, 4), solver)
        assert torch.equal(together.z[i], alone.z[0]) and together.iterations[i] == alone.iterations[0]
    assert together.iterations[0] < together.iterations[1] or isinstance(solver, Broyden)  # which is soon done on lines


def test_what_does_not_converge_is_told_and_stays_finite() -> None:
    for solver in (Iteration(max_iterations=300), Anderson(max_iterations=300), Broyden(max_iterations=300)):
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


def test_a_fixed_point_at_zero_is_approached() -> None:
    """g(z) = z/2: elsewhere the relative residual is 1, so that no solve converges; its last point is the best."""
    found = solve(lambda z: z / 2, torch.ones(1, 1), Iteration(max_iterations=20))
    assert (found.z.item(), found.converged.item()) == (0.5**20, False)
