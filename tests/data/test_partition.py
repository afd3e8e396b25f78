"""Who holds which samples: laws of all partitioners, values worked out by hand, and what is a client's own in them."""

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
from raysim.data import PARTITIONS, Split, divided, federate
from raysim.data.federation.given import Indices
from raysim.data.federation.holdings import Holdings
from raysim.data.federation.label_skew import (
    Classes,
    Dirichlet,
    DirichletClients,
    Shards,
    block_counts,
    draw_mix,
    open_shares,
    weighted_counts,
)
from raysim.data.federation.partition import (
    DirichletSizes,
    Iid,
    LogNormalSizes,
    Natural,
    Partitioner,
    PowerLawSizes,
    cut,
    deal,
)
from raysim.data.federation.server import NoServerData
from raysim.data.federation.skew import FeatureSkew, NoisyClients, mislabel
from raysim.data.sources.arrays import Arrays
from raysim.local.samples import Loader
from raysim.parts.errors import BadInput
from raysim.parts.rng import generator

CLIENTS = 12
EVERY_KIND: list[Partitioner] = [
    Iid(),
    Dirichlet(alpha=0.5, min_size=1),
    Dirichlet(alpha=0.5, min_size=1, cap=False),
    Dirichlet(alpha=0.5, min_size=1, over="fine"),
    DirichletClients(alpha=0.5),
    Shards(per_client=3),
    Classes(per_client=2),
    Classes(per_client=2, assignment="collins"),
    Natural(by="user"),
    Iid(sizes=LogNormalSizes(sigma=1.0)),
    Iid(sizes=PowerLawSizes(exponent=1.0)),
    Iid(sizes=DirichletSizes(alpha=0.5)),
    DirichletClients(alpha=0.5, sizes=LogNormalSizes(sigma=1.0)),
    Classes(per_client=2, sizes=PowerLawSizes(exponent=1.0)),
    Indices(rows=tuple(tuple(range(client, 600, CLIENTS)) for client in range(CLIENTS))),
]


def short(partition: Partitioner) -> str:
    return repr(partition)[:60]


def pool(samples: int = 600, classes: int = 6) -> Split:
    """Samples with labels in random order, two finer labels for each label, and twelve users."""
    draw = generator(0, "pool")
    y = draw.integers(classes, size=samples)
    columns = {"fine": 2 * y + draw.integers(2, size=samples), "user": draw.integers(CLIENTS, size=samples)}
    return Split(np.zeros((samples, 1, 1, 1), dtype=np.uint8), y, columns)


def balanced(classes: int, each: int) -> Split:
    y = np.repeat(np.arange(classes), each)
    return Split(np.zeros((len(y), 1, 1, 1), dtype=np.uint8), y)


def label_counts(split: Split, parts: list[np.ndarray]) -> np.ndarray:
    """(clients, labels)."""
    return np.stack([np.bincount(split.y[rows], minlength=split.y.max() + 1) for rows in parts])


def test_every_partition_of_the_union_is_tested() -> None:
    assert {type(partition) for partition in EVERY_KIND} == set(PARTITIONS)


@pytest.mark.parametrize("partition", EVERY_KIND, ids=short)
def test_every_sample_goes_to_exactly_one_client(partition: Partitioner) -> None:
    split = pool()
    parts = partition.split(split, CLIENTS, generator(1, "partition"))
    assert len(parts) == CLIENTS
    assert all(rows.dtype == np.int64 and len(rows) for rows in parts)
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(len(split)))


@pytest.mark.parametrize("partition", [Iid(), DirichletClients(alpha=0.1)], ids=repr)
def test_sizes_are_equal_up_to_one(partition: Partitioner) -> None:
    sizes = [len(rows) for rows in partition.split(pool(605), CLIENTS, generator(0, "partition"))]
    assert sorted(set(sizes)) == [50, 51]


@pytest.mark.parametrize("partition", [Iid(), DirichletClients(alpha=0.1), Shards(), Classes(per_client=1)], ids=repr)
def test_more_clients_than_samples_is_an_error(partition: Partitioner) -> None:
    with pytest.raises(ValueError, match="lower `clients`"):
        partition.split(balanced(2, 3), 7, generator(0, "partition"))


# Dirichlet


def test_a_client_with_the_mean_size_gets_nothing_more() -> None:
    """Two clients, two labels of four samples: p = (1, 0), then (1/2, 1/2), gives sizes (4, 4); without cap (6, 2)."""
    p = np.array([[1.0, 0.0], [0.5, 0.5]])
    for limit, expected in ((4, [4, 4]), (np.inf, [6, 2])):
        sizes = np.zeros(2, dtype=np.int64)
        for shares in p:
            sizes += cut(4, open_shares(shares, sizes, limit))
        assert sizes.tolist() == expected


def test_shares_that_only_full_clients_have_leave_nothing() -> None:
    """The sum of the others' shares is zero then, by which nothing can be divided."""
    assert open_shares(np.array([1.0, 0.0]), np.array([4, 1]), 4).tolist() == [0.0, 0.0]


def test_dirichlet_draws_again_where_all_shares_underflow() -> None:
    """With so small an alpha every label goes to one client, and half of the draws pick one that is full already."""
    counts = [
        len(rows) for rows in Dirichlet(alpha=1e-9, min_size=4).split(balanced(2, 4), 2, generator(0, "partition"))
    ]
    assert counts == [4, 4]


def test_dirichlet_says_what_to_change_when_the_minimum_size_is_never_reached() -> None:
    partition = Dirichlet(alpha=0.01, max_retries=5)
    with pytest.raises(ValueError, match=r"`min_size` 10 .* 5 draws .*alpha 0.01.*; lower `min_size` or `clients`,"):
        partition.split(balanced(2, 50), 10, generator(0, "partition"))


def test_dirichlet_over_a_column_skews_that_column() -> None:
    """Over two users with a tiny alpha, each user's samples lie with one client."""
    split = Split(np.zeros((40, 1, 1, 1), np.uint8), np.tile([0, 1], 20), {"user": np.repeat([0, 1], 20)})
    parts = Dirichlet(alpha=1e-6, over="user").split(split, 2, generator(0, "partition"))
    assert sorted(np.unique(split.columns["user"][rows]).tolist() for rows in parts) == [[0], [1]]


def test_an_unknown_column_is_an_error_that_lists_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"no column 'writer'.*'label', 'fine', 'user'"):
        Dirichlet(alpha=1.0, over="writer").split(pool(), 2, generator(0, "partition"))


def test_smaller_alpha_skews_more() -> None:
    """The mean share of a client's commonest label, over both kinds of Dirichlet partition."""
    split = balanced(10, 200)

    def commonest(partition: Partitioner) -> float:
        counts = label_counts(split, partition.split(split, 10, generator(0, "partition")))
        return float((counts.max(axis=1) / counts.sum(axis=1)).mean())

    for low, high in (
        (Dirichlet(alpha=0.1), Dirichlet(alpha=100.0)),
        (DirichletClients(alpha=0.5), DirichletClients(alpha=1000.0)),
    ):
        assert commonest(low) > 0.35
        assert commonest(high) < 0.2


def test_clients_whose_weights_underflow_share_a_label_evenly() -> None:
    """Clients 1 and 2 hold label 1, with a weight of 0 each; they got no samples, or all of them."""
    labels, totals = np.array([[0], [1], [1]]), np.array([4, 7])
    assert weighted_counts(labels, totals, np.array([1.0, 0.0, 0.0])).tolist() == [[4, 0, 0], [0, 3, 4]]


def test_a_client_falls_back_to_what_is_left() -> None:
    """A mix of the first label only: its three samples are taken, and four of the eight of the other one."""
    drawn = draw_mix(np.array([1.0, 0.0]), 7, np.array([3, 8]), generator(0, "mix"))
    assert drawn.tolist() == [3, 4]


# Blocks of labels


def test_cyclic_clients_hold_labels_from_their_own_number_on() -> None:
    split = balanced(4, 8)
    counts = label_counts(split, Classes(per_client=2).split(split, 4, generator(0, "partition")))
    assert counts.tolist() == [[4, 4, 0, 0], [0, 4, 4, 0], [0, 0, 4, 4], [4, 0, 0, 4]]


def test_blocks_of_given_size_leave_the_other_samples_out() -> None:
    split = balanced(4, 8)
    parts = Classes(per_client=2, samples_per_class=3).split(split, 4, generator(0, "partition"))
    assert label_counts(split, parts).tolist() == [[3, 3, 0, 0], [0, 3, 3, 0], [0, 0, 3, 3], [3, 0, 0, 3]]
    assert len(np.unique(np.concatenate(parts))) == 24


@pytest.mark.parametrize(
    ("labels", "expected"), [([[0, 1], [1, 0]], [[2, 2], [2, 2]]), ([[0, 0], [1, 1]], [[4, 0], [0, 4]])]
)
def test_collins_deals_a_block_for_every_entry_of_the_table(labels: list[list[int]], expected: list[list[int]]) -> None:
    """Two labels of four samples in two blocks each; a client may get both blocks of a label."""
    assert block_counts(np.array(labels), np.array([4, 4]), None).T.tolist() == expected


def test_leftover_samples_go_to_the_first_blocks() -> None:
    assert block_counts(np.array([[0], [0], [0]]), np.array([8]), None).tolist() == [[3, 3, 2]]


def test_too_few_samples_for_the_blocks_is_an_error() -> None:
    with pytest.raises(ValueError, match="5 samples for each of 2 blocks, got 8 in all; lower"):
        Classes(per_client=2, samples_per_class=5).split(balanced(4, 8), 4, generator(0, "partition"))


def test_what_cannot_be_dealt_is_known_without_data_and_found_with_it() -> None:
    uneven, many = Classes(per_client=2, assignment="collins"), Classes(per_client=6)
    assert "must be a multiple of the number of labels, 5, got 2 * 4" in uneven.problems(4, 5)[0]
    assert "must be at most the number of labels, 5, got 6" in many.problems(4, 5)[0]
    assert not uneven.problems(5, 5)
    assert not uneven.problems(4, None)
    with pytest.raises(ValueError, match="must be a multiple"):
        uneven.split(balanced(5, 40), 4, generator(0, "partition"))


# Natural


def test_natural_clients_are_the_values_of_a_column_in_sorted_order() -> None:
    split = Split(
        np.zeros((5, 1, 1, 1), np.uint8), np.zeros(5, np.int64), {"role": np.array(["c", "a", "b", "a", "c"])}
    )
    parts = Natural(by="role").split(split, 2, generator(0, "partition"))
    assert [rows.tolist() for rows in parts] == [[1, 3], [2]]


def test_natural_may_draw_its_clients() -> None:
    split = pool()
    parts = Natural(by="user", shuffle=True).split(split, 5, generator(0, "partition"))
    users = [set(split.columns["user"][rows]) for rows in parts]
    assert all(len(user) == 1 for user in users)
    assert len(set.union(*users)) == 5
    assert set.union(*users) != set(range(5))


def test_fewer_users_than_clients_is_an_error() -> None:
    with pytest.raises(ValueError, match="at most the number of distinct values of 'user', 12, got 13; lower"):
        Natural(by="user").split(pool(), 13, generator(0, "partition"))


def test_dealing_gives_no_row_twice() -> None:
    parts = deal([np.arange(5), np.arange(5, 9)], np.array([[2, 1], [0, 4]]), generator(0, "deal"))
    assert [len(rows) for rows in parts] == [2, 5]
    assert len(np.unique(np.concatenate(parts))) == 7
    assert set(parts[1]) >= {5, 6, 7, 8}


# --- what is a client's own: changed inputs, and wrong labels ---------------------------------------------------------


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
