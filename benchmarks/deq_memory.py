"""Measures the peak memory of a training step with a deep equilibrium layer, for three ways to get gradients.

    python benchmarks/deq_memory.py

The ways are jacobian_free, implicit, and unrolled, which differentiates through all iterations. Each step trains
DEQ-ResNet-S on 28 x 28 images in a process of its own, with a tolerance that is never reached. Printed is how far the
resident memory of the process rises during the step.
"""

import argparse
import multiprocessing
import resource
import time
from pathlib import Path
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from raysim.models import Anderson, DEQResNet
from raysim.models.build import initialise

Method = Literal["jacobian_free", "implicit", "unrolled"]
SHAPE, CLASSES, BATCH = (1, 28, 28), 62, 20


class Unrolled(nn.Module):
    """A plain loop of iterations z = g(z, x), through all of which gradients flow."""

    def __init__(self, g: nn.Module, iterations: int) -> None:
        super().__init__()
        self.g, self.iterations = g, iterations

    def forward(self, x: Tensor) -> Tensor:
        z = x
        for _ in range(self.iterations):
            z = self.g(z, x)
        return z


def step(method: Method, iterations: int) -> None:
    """Does one forward and one backward pass."""
    backward = "jacobian_free" if method == "unrolled" else method
    solver = Anderson(tolerance=1e-12, max_iterations=iterations)
    module = initialise(DEQResNet(solver=solver, backward=backward), SHAPE, CLASSES, seed=0)
    if method == "unrolled":
        module.equilibrium = Unrolled(module.equilibrium.g, iterations)
    x = torch.randn(BATCH, *SHAPE).contiguous(memory_format=torch.channels_last)
    F.cross_entropy(module(x), torch.arange(BATCH)).backward()


def measure(method: Method, iterations: int) -> tuple[float, float]:
    """Returns the peak memory of a step in MB, and its seconds."""
    torch.set_num_threads(1)
    step("jacobian_free", 6)  # so that libraries are loaded before
    before = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    started = time.perf_counter()
    step(method, iterations)
    seconds = time.perf_counter() - started
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before) / 1e6, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, nargs="+", default=[6, 20, 80])
    given = parser.parse_args()
    print(f"{'gradients':15s} {'iterations':>10s} {'MB':>8s} {'seconds':>8s}")
    spawn = multiprocessing.get_context("spawn")
    for method in get_args(Method):
        for iterations in given.iterations:
            with spawn.Pool(1) as pool:
                megabytes, seconds = pool.apply(measure, (method, iterations))
            print(f"{method:15s} {iterations:10d} {megabytes:8.1f} {seconds:8.2f}")


if __name__ == "__main__":
    main()
