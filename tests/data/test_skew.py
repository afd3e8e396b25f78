"""Feature skew: what is changed of a client's inputs, and what is not."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import Raw, digits
from data_sets import federation

import raysim
from raysim import parse_scenario
from raysim.data.federation.skew import FeatureSkew
from raysim.local.samples import Loader
from raysim.parts.errors import BadInput

CPU = torch.device("cpu")


def seen(skew: Raw | FeatureSkew | None, client: int, **more: Any) -> torch.Tensor:
    """The training inputs of a client, with pixels from 0 to 1."""
    held = federation(skew=skew, scale="unit", **more)
    return Loader(held.mean, held.std, CPU, held.skewed)(held.train, held.train_rows(client), client)[0]


def test_noise_grows_with_the_client_and_stays_with_the_sample() -> None:
    noise = {"name": "noise", "sigma": 0.3}
    deviations = [float((seen(noise, client) - seen(None, client)).std()) for client in (0, 3, 9)]
    assert deviations == pytest.approx([0, 0.1, 0.3], rel=0.05)
    held = federation(skew=noise)
    loader, rows = Loader(held.mean, held.std, CPU, held.skewed), held.train_rows(4)
    whole, part = (loader(held.train, chosen, 4)[0] for chosen in (rows, rows[10:13]))
    assert torch.equal(whole[10:13], part)


def test_rotations_are_of_the_client_s_group() -> None:
    skew = {"name": "rotation"}
    for client in range(5):
        torch.testing.assert_close(seen(skew, client), torch.rot90(seen(None, client), client % 4, (2, 3)))


def test_what_is_nobody_s_own_is_not_changed() -> None:
    held = federation(skew={"name": "noise", "sigma": 1.0})
    skewed, plain = (Loader(held.mean, held.std, CPU, changed) for changed in (held.skewed, None))
    assert torch.equal(skewed(held.test, held.evaluation_rows)[0], plain(held.test, held.evaluation_rows)[0])


def test_what_cannot_be_changed_is_told(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.random.default_rng(0).random((50, 4)), y=np.arange(50) % 2)
    flat = {"name": "arrays", "path": str(tmp_path / "a.npz"), "clients": 2, "partition": "iid"}
    raw = {**digits(world__dispatch={"per_round": 1}, model="linear"), "data": {**flat, "skew": "rotation"}}
    with pytest.raises(raysim.RunFailed, match=r"data.skew: .* needs images"):
        raysim.run(parse_scenario(raw), out=tmp_path, inline=True)
    assert issubclass(BadInput, ValueError)
