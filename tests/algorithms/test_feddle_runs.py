"""Feddle in runs: what the tables show of it, where it is FedBuff, and what it cannot do."""

from typing import Any

import pytest
from conftest import Raw, Simulate, digits

import raysim
from raysim import ScenarioError, parse_scenario

SERVER: Raw = {"name": "in_domain", "samples": 100}
OTHER: Raw = {"name": "out_of_domain", "data": "digits", "samples": 200}
PARAMETERS = 64 * 16 + 16 + 16 * 10 + 10  # of the model of `digits`
FORWARD = 2 * (64 * 16 + 16 * 10)  # its FLOPs, a sample


def feddle(options: Raw | None = None, server_data: Any = SERVER, **more: Any) -> Raw:
    return digits(algorithm={"name": "feddle", **(options or {})}, server_data=server_data, **more)


def test_the_table_of_coefficients_has_a_row_an_anchor(simulate: Simulate) -> None:
    """The atlas has twice as many places as clients are picked in a round."""
    result = simulate(feddle())
    found, used = result.pandas("coefficients"), result.pandas("updates").query("status == 'used'")
    arrived = 0
    for number, anchors in found.groupby("step"):
        now = used[used.step == number]
        arrived += len(now)
        assert len(anchors) == min(arrived, 12)
        assert anchors.anchor.tolist() == list(range(len(anchors)))
        assert set(anchors["round"]) == set(now["round"])
        fresh = anchors[anchors.arrived == number]
        assert sorted(fresh.client) == sorted(now.client)
        assert (anchors.arrived <= number).all()
        assert (anchors.fallback[anchors.arrived < number] == 0).all()
        assert (fresh.fallback > 0).all()
    assert found.step.nunique() == result.info["totals"]["steps"]
    assert arrived > 12
    assert (found.norm > 0).all()


def costs(result: raysim.Result) -> list[tuple[float, float]]:
    steps = result.pandas("steps")
    return list(zip(steps.server_flops, steps.cache_bytes, strict=True))


def test_what_the_server_computes_and_keeps(simulate: Simulate) -> None:
    """A sum of vectors takes an addition and a product an element, and a gradient three passes."""
    rounds: Raw = {"world": {"dispatch": {"per_round": 3}}, "run__rounds": 3}
    model, summed = 4 * PARAMETERS, 2 * 3 * PARAMETERS
    ca2fl = {"name": "ca2fl", "buffer": 3}
    for name, sums, kept in (("fedavg", 1, 1), ({"name": "fedbuff", "buffer": 3}, 1, 1 + 3), (ca2fl, 2, 35)):
        assert costs(simulate(digits(algorithm=name, **rounds))) == [(sums * summed, kept * model)] * 3, name
    searched = simulate(feddle({"server_epochs": 2, "server_batch_size": 30}, **rounds))
    expected = []
    for anchors in (3, 6, 6):
        passes = 2 * 100 * 3 * FORWARD
        vectors = 4 * anchors * PARAMETERS * 2 * 4  # added to the model and projected on, in each of four batches
        numbers = 6 * (4 + 4 + 8 + 8)  # the places' scores, discounts, clients and steps
        expected.append((passes + summed + vectors, model * (1 + anchors) + numbers))
    assert costs(searched) == expected


def test_out_of_domain_the_model_needs_a_body_to_steer(tmp_path: Any) -> None:
    """Coefficients change nothing that the surrogate head sees where nothing before the model's head trains."""
    raw = feddle(server_data=OTHER, model={"name": "mlp", "hidden": []})
    expected = r"model: must have trainable parameters before its personal part, .*, got none; take another model"
    with pytest.raises(raysim.RunFailed, match=expected):
        raysim.run(parse_scenario(raw), out=tmp_path, inline=True)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (
            feddle(server_data="none"),
            "server_data: must not be none, because the server of feddle needs server-side samples",
        ),
        (feddle({"search_after": 4}, world={"dispatch": {"concurrency": 9}}), "algorithm.atlas: must be given if no"),
        (feddle({"search_after": 10, "atlas": 3}), "algorithm.atlas: must be at least search_after, 10, or some"),
        (feddle({"atlas": 0}), "algorithm.atlas: "),
        (feddle({"regularization": -0.1}), "algorithm.regularization: "),
        (feddle(resources={"aggregators": 3, "shards": 2}), "resources.aggregators: must be at most resources.shards,"),
    ],
)
def test_what_it_cannot_do_is_refused(raw: Raw, expected: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(raw)
    assert expected in str(caught.value)
