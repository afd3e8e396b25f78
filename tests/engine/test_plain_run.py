"""What the engine and its workers make of a scenario is what one client after the other makes of it, in one loop."""

from typing import Any

import pytest
import torch
from conftest import Raw, Simulate, digits
from plain_run import PlainRun

from raysim.algorithms import ALGORITHMS, Central

WITH_SERVER_DATA = {"fed_ft", "hfcl", "feddf", "feddle", "center"}
NAMES = [part.model_fields["name"].default for part in ALGORITHMS if issubclass(part, Central)]
SLICED = {"heterofl", "fedrolex", "fjord"}  # which `test_levels` holds against another loop
DEEP = {"depthfl", "inclusivefl"}  # which `test_depths` does
MIXED = {"fedmd"}  # which `test_architectures` does
OTHERS = [
    name for name in NAMES if name not in (*WITH_SERVER_DATA, *SLICED, *DEEP, *MIXED, "fedat")
]  # the loop has no tiers
HEADED: Raw = {"name": "mlp", "hidden": [16], "personal": ["head"]}
ADAPTED: Raw = {"name": "mlp", "hidden": [16], "lora": {"rank": 2}}
MODELS = {
    "flexlora": ADAPTED,
    "flora": {**ADAPTED, "lora": {"rank": 2, "merge": True}},
}


# One of each way in which updates and states travel; the others, too, in the slow suite.
FIRST = {"fedavg", "fedbuff", "fedasync", "scaffold", "ditto", "fedrep", "fedadmm_insa", "mifa", "flora", "toys:Median"}


@pytest.mark.parametrize(
    "algorithm",
    [pytest.param(name, marks=[pytest.mark.slow] * (name not in FIRST)) for name in [*OTHERS, "toys:Median"]],
)
def test_the_engine_does_what_a_plain_loop_does(simulate: Simulate, algorithm: str) -> None:
    """With clients that come again, late updates and chunks of a sum; to rounding, for a loop sums in another order."""
    delay = {"name": "half_normal", "sigma": 2}
    # With the paper's lambda, pFedMe multiplies what rounding makes of it.
    made: Any = {"name": "pfedme", "lam": 1.0} if algorithm == "pfedme" else algorithm
    raw = digits(
        algorithm=made, model=MODELS.get(algorithm, HEADED), world={"dispatch": {"per_round": 8}, "delay": delay}
    )
    w = torch.tensor(simulate(raw).vectors()["w"])
    torch.testing.assert_close(w, PlainRun(raw).run().model.w, rtol=1e-3, atol=1e-5)
