"""What is a client's own in its samples: changed inputs, and wrong labels."""

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from conftest import Raw, digits
from data_sets import digits as part_of_digits
from data_sets import federation

import raysim
from raysim import parse_scenario
from raysim.data import divided, federate
from raysim.data.federation.holdings import Holdings
from raysim.data.federation.partition import Iid
from raysim.data.federation.server import NoServerData
from raysim.data.federation.skew import FeatureSkew, NoisyClients, mislabel
from raysim.data.sources.arrays import Arrays
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


def test_a_share_of_each_clients_labels_is_wrong() -> None:
    plain, noisy = federation(local_test=0.2), federation(local_test=0.2, label_noise=0.3)
    np.testing.assert_array_equal(noisy.held.rows, plain.held.rows)
    differ = noisy.train.y != plain.train.y
    for client in range(10):
        assert differ[noisy.train_rows(client)].sum() == round(0.3 * noisy.samples[client])
    assert not differ[noisy.held_out.rows].any()
    np.testing.assert_array_equal(noisy.test.y, plain.test.y)
    assert not np.array_equal(federation(seed=1, local_test=0.2, label_noise=0.3).train.y, noisy.train.y)


def test_each_other_label_is_as_likely() -> None:
    labels = np.full(9000, 2)
    wrong = mislabel(labels, Holdings.by_client([np.arange(9000)]), np.ones(1), 4, seed=0)
    assert (labels == 2).all()
    counts = np.bincount(wrong, minlength=4)
    assert counts[2] == 0
    assert counts[[0, 1, 3]] == pytest.approx(3000, abs=200)


def test_what_nobody_holds_keeps_its_labels() -> None:
    labels = np.arange(100) % 4
    wrong = mislabel(labels, Holdings.by_client([np.arange(10), np.arange(50, 60)]), np.ones(2), 4, seed=0)
    assert np.flatnonzero(wrong != labels).tolist() == [*range(10), *range(50, 60)]


def test_each_client_may_have_a_share_of_its_own() -> None:
    shares = (0.0, 0.5) * 5
    plain, noisy = federation(), federation(label_noise=shares)
    for client, share in enumerate(shares):
        rows = noisy.train_rows(client)
        assert (noisy.train.y[rows] != plain.train.y[rows]).sum() == round(share * len(rows))


def test_a_single_label_cannot_be_wrong_but_random() -> None:
    zeros = {"x": np.arange(40.0), "y": np.zeros(40, dtype=np.int64)}

    def labels(kind: Literal["wrong", "random"]) -> np.ndarray:
        data = divided(Arrays.of(zeros), clients=2, partition=Iid(), label_noise=0.5, noisy_labels=kind)
        return federate(data, NoServerData(), seed=0).train.y

    assert not labels("random").any()
    with pytest.raises(BadInput, match=r"data.label_noise: must be 0, because there is only one label"):
        labels("wrong")


def test_some_clients_are_noisy_by_chance_and_at_least_by_a_share() -> None:
    drawn = NoisyClients(clients=0.4, least=0.5, most=0.9).shares(2000, seed=3)
    noisy = drawn[drawn > 0]
    assert len(noisy) == pytest.approx(800, abs=80)
    assert 0.5 <= noisy.min() < 0.52 < 0.88 < noisy.max() <= 0.9
    assert not np.array_equal(drawn, NoisyClients(clients=0.4, least=0.5, most=0.9).shares(2000, seed=4))


def test_the_least_share_is_at_most_the_largest() -> None:
    with pytest.raises(ValueError, match=r"`least` must be at most `most`, got 0.6 and 0.4; swap them"):
        NoisyClients(clients=0.4, least=0.6, most=0.4)


def test_samples_that_several_clients_hold_have_no_share_of_one_client() -> None:
    """The label that is wrong for one of them is wrong for all."""
    shared = {"name": "indices", "rows": (tuple(range(100)),) * 2, "overlap": True}
    with pytest.raises(BadInput, match=r"data.label_noise: must be 0 where a sample is held several times"):
        federation(clients=2, partition=shared, label_noise=(0.5, 0.0))
    assert federation(clients=2, partition=shared).samples.tolist() == [100, 100]


def test_shares_must_be_as_many_as_clients() -> None:
    found = part_of_digits(label_noise=[0.1] * 3).division_problems()
    assert found == ["`label_noise` must have a share for each of 10 clients, got 3"]


def test_random_labels_may_be_right() -> None:
    labels = np.full(9000, 2)
    noisy = mislabel(labels, Holdings.by_client([np.arange(9000)]), np.ones(1), 3, seed=0, kind="random")
    assert np.bincount(noisy) == pytest.approx(3000, abs=200)
    plain, random = federation(), federation(label_noise=1.0, noisy_labels="random")
    assert (random.train.y == plain.train.y).mean() == pytest.approx(0.1, abs=0.03)
