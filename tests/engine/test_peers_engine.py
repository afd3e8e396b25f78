"""Peers in a run: rounds, gossip, lost messages, and a peer that fails."""

from pathlib import Path

import numpy as np
import pytest
from conftest import Simulate, computed
from peers_runs import GOSSIP, SECONDS, centers, of_all, peers

import raysim

# --- rounds -----------------------------------------------------------------------------------------------------------


def test_without_training_peers_agree_as_fast_as_the_second_eigenvalue_of_w(simulate: Simulate) -> None:
    """A ring of six with weights 1/3: the start is an eigenvector of 1/3 + 2/3 cos(2 pi / 6) = 2/3."""
    start = [float(np.cos(2 * np.pi * peer / 6)) for peer in range(6)]
    apart = of_all(simulate(centers(start, 12)), "consensus")
    assert apart[0] == pytest.approx(2 / 3 * np.sqrt(np.mean(np.square(start))), rel=1e-6)
    assert np.divide(apart[1:], apart[:-1]) == pytest.approx([2 / 3] * 11, rel=1e-5)


def test_a_graph_that_is_drawn_anew_has_other_edges_and_the_mean_stays(simulate: Simulate) -> None:
    topology = {"name": "random", "redraw_every": 2}
    result = simulate(centers([1.0, 2.0, 3.0, 4.0, 5.0, 9.0], 6, topology=topology))
    edges = (
        result.pandas("exchanges").groupby("round").apply(lambda rows: set(zip(rows.source, rows.target, strict=True)))
    )
    assert edges[0] == edges[1] and edges[2] == edges[3] and edges[4] == edges[5]
    assert edges[0] != edges[2] != edges[4]
    assert result.vectors()["w"].mean() == pytest.approx(4.0, rel=1e-6)


DELAY = computed(1e6, 1000, 2000)
POWER_LAW = {"name": "iid", "sizes": {"name": "power_law", "exponent": 1.0}}


@pytest.mark.parametrize(
    ("algorithm", "options", "size", "own", "public", "each"),
    [
        ("decfedavg", [], 650, 3, 0, (0, 0)),
        # Training on 40 public inputs takes three passes, and outputs take one, of oneself or of each neighbour too.
        ("cmfd", ["algorithm.share=outputs"], 40 * 10, 3, 40 + 120, (0, 0)),
        ("cmfd", ["algorithm.share=parameters"], 650, 3, 160, (0, 40)),
        # It also predicts before it begins, for free.
        ("fedf_admm", ["algorithm.share=outputs"], 40 * 10, 3, 40 + 120, (0, 0)),
        ("fedf_admm", ["algorithm.share=parameters"], 650, 3, 160, (0, 40)),
        # It trains twice, takes a gradient and predicts; with each neighbour's model, it predicts public samples, too.
        ("toys_peers:Foreseeing", [f"data.partition={POWER_LAW}"], 650, 3 * 2 + 3 + 1, 0, (1, 40)),
    ],
)
def test_computed_delays_count_training_mixing_and_messages(
    simulate: Simulate, algorithm: str, options: list[str], size: int, own: int, public: int, each: tuple[int, int]
) -> None:
    """On a star, 64 -> 10: passes of 640 multiplications a sample, of which a peer takes `own` for each of its own,
    `public` for public ones and, for each neighbour, `each` of its own and of public ones."""
    raw = peers(
        algorithm=algorithm,
        topology="star",
        public={"samples": 40},
        model={"name": "mlp", "hidden": []},
        world={"delay": DELAY},
        run={"rounds": 1},
    )
    updates = simulate(raw, "--dry", *(word for option in options for word in ("--set", option))).pandas("updates")
    neighbours = np.array([9] + [1] * 9)
    assert "toys" not in algorithm or updates.samples.nunique() > 5
    passes = own * updates.samples + public + (each[0] * updates.samples + each[1]) * neighbours
    expected = 2 * 64 * 10 * passes / 1e6 + 4 * size * neighbours * (1 / 1000 + 1 / 2000)
    assert updates.arrived_at.to_numpy() == pytest.approx(expected.to_numpy())


def test_a_delay_is_drawn_for_each_message_or_for_each_edge(simulate: Simulate) -> None:
    """A delay of an edge is the same both ways, and edges differ."""
    for redraw, delays in (("message", 120), ("edge", 10)):
        edge_delay = {"name": "exponential", "mean": 0.3, "redraw": redraw}
        exchanges = simulate(peers(world={"delay": SECONDS, "edge_delay": edge_delay})).pandas("exchanges")
        exchanges["delay"] = (exchanges.arrived_at - exchanges.virtual_time).round(9)
        assert len(exchanges) == 120 and exchanges.delay.nunique() == delays
    edges = exchanges[["source", "target"]].agg(lambda ends: tuple(sorted(ends)), axis=1)
    assert exchanges.groupby(edges).delay.nunique().tolist() == [1] * 10


# --- gossip -----------------------------------------------------------------------------------------------------------


def test_gossip_in_step_is_rounds(simulate: Simulate) -> None:
    """Where all train for a second and messages take no time, nobody has anything to wait for."""
    delay = {"name": "constant", "value": 1.0, "unit": "seconds"}
    waiting, hasty = (simulate(peers(world={"delay": delay, "synchronous": wait})) for wait in (True, False))
    assert waiting.info["digest"]["model"] == hasty.info["digest"]["model"]
    assert waiting.pandas("updates").virtual_time.tolist() == hasty.pandas("updates").virtual_time.tolist()


def test_gossip_goes_on_until_there_are_rounds_times_peers_mixes(simulate: Simulate) -> None:
    result = simulate(peers(world=GOSSIP))
    updates, steps = result.pandas("updates"), result.pandas("steps")
    assert len(updates) == 60 and steps.used.tolist() == [10] * 6
    assert updates.virtual_time.is_monotonic_increasing
    assert updates.groupby("client").size().nunique() > 1  # fast ones mix more often
    assert updates.groupby("client").version.apply(lambda v: v.tolist() == list(range(len(v)))).all()
    assert (updates.dispatched_at < updates.arrived_at).all()
    assert steps.staleness_max.max() > 0.3
    assert result.pandas("evaluations")["round"].unique().tolist() == [3, 5]


# --- lost messages ----------------------------------------------------------------------------------------------------


def test_who_hears_nobody_keeps_what_it_has(simulate: Simulate) -> None:
    result = simulate(centers([1.0, 5.0, 3.0], 4, world={"loss": 1.0}))
    assert result.vectors()["w"][:, 0].tolist() == [1.0, 5.0, 3.0]
    assert result.info["totals"]["lost"] == result.info["totals"]["sent"] == 24
    assert result.pandas("steps").down_bytes.tolist() == [0] * 4


def test_the_weight_of_a_lost_message_falls_to_the_peer_itself(simulate: Simulate) -> None:
    """Followed with the table of messages: x_i + sum_j W_ij (x_j - x_i) over those that arrived."""
    result = simulate(centers([1.0, 2.0, 4.0, 8.0, 16.0], 10, world={"loss": 0.4}))
    exchanges = result.pandas("exchanges")
    x = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    for _, rows in exchanges.groupby("round"):
        arrived = rows[rows.arrived_at.notna()]
        change = np.zeros(5)
        np.add.at(change, arrived.target, (x[arrived.source] - x[arrived.target]) / 3)
        x = x + change
    assert result.vectors()["w"][:, 0] == pytest.approx(x, rel=1e-6)
    assert len(exchanges) == 100 and 20 < exchanges.arrived_at.isna().sum() < 60
    steps = result.pandas("steps")
    assert (steps.up_bytes == 40).all() and steps.down_bytes.sum() == 4 * exchanges.arrived_at.notna().sum()


# --- what is wrong ----------------------------------------------------------------------------------------------------


def test_a_peer_that_fails_is_named(tmp_path: Path) -> None:
    with pytest.raises(raysim.RunFailed) as caught:
        raysim.run(raysim.parse_scenario(peers(algorithm="toys_peers:Failing")), out=tmp_path, inline=True)
    assert "ZeroDivisionError: this peer divides by zero - peer 4, after 2 mixes, local" in str(caught.value)
    (folder,) = tmp_path.iterdir()
    assert raysim.Result(folder).info["status"] == "failed"


def test_a_peer_without_samples_is_an_error_before_any_work(tmp_path: Path) -> None:
    raw = peers(data__clients=100, data__partition={"name": "dirichlet", "alpha": 0.05, "min_size": 0})
    with pytest.raises(raysim.RunFailed, match=r"data.partition: every peer must hold a sample to train on, got") as e:
        raysim.run(raysim.parse_scenario(raw), out=tmp_path, inline=True)
    assert e.value.traceback == ""
