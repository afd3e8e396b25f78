"""Noise on the sums of steps: by hand, what leaves the bits, what is known before training, and what is refused."""

import re
from pathlib import Path
from typing import Any

import pytest
from conftest import Raw, Simulate, digits, override, quadratic
from pytest import approx
from ruamel.yaml import YAML
from support.command_line import command
from support.same_bits import same_on_ray

from raysim import CannotGoOn, ScenarioError, fork, load_scenario, parse_scenario, resume, run
from raysim.algorithms.fedavg import FedAvg
from raysim.algorithms.signatures import Arrivals
from raysim.laws.runs import PicklingPool, carried_out
from raysim.privacy.release import GaussianRelease, Normal
from raysim.terms import Population, Record, Tensor
from results import summary

FALLING = {"name": "polynomial", "start": 0.5, "end": 0.1, "length": 4}
CLIP = [{"name": "clip_norm", "max": 2.0}]
UNIFORM = {"name": "fedavg", "weights": "uniform"}
PRIVATE = digits(
    algorithm={"name": "fedbuff", "buffer": 3},
    world__staleness="rounds",
    uplink=[{"name": "clip_norm", "max": 0.5}],
    release={"name": "gaussian", "multiplier": 2.0},
    privacy={"delta": 1e-5},
)


class Uneven(FedAvg):
    """Client 0 counts three times as much as client 1."""

    name: str = "uneven"

    def weigh(self, arrivals: Arrivals, population: Population) -> list[float]:
        return [0.75 if arrival.client == 0 else 0.25 for arrival in arrivals]


class Given(GaussianRelease):
    """Noise that is given."""

    name: str = "given"
    xi: tuple[float, ...]

    def draw(self, version: int, kept: Record, normal: Normal) -> tuple[Tensor, Record]:
        return normal(version).new_tensor(self.xi), {}


def noised(simulate: Simulate, algorithm: Any, multiplier: float, xi: list[float], **more: Any) -> list[float]:
    """The model after one step from 0 with the updates (3, 4) and (0, 1)."""
    raw = quadratic([[3.0, 4.0], [0.0, 1.0]], algorithm, {"dispatch": {"picks": [[0, 1]]}}, 1, uplink=CLIP, **more)
    release = {"name": f"{__name__}:Given", "multiplier": multiplier, "xi": xi}
    found: list[float] = simulate({**raw, "release": release}).vectors()["w"].tolist()
    return found


def test_noise_by_hand(simulate: Simulate) -> None:
    """Clipped to 2, the updates are (1.2, 1.6) and (0, 1); the noise of each number is z C max w xi."""
    assert noised(simulate, UNIFORM, 1.0, [0.5, -1.0]) == approx([1.1, 0.3])
    assert noised(simulate, UNIFORM, 0.0, [0.5, -1.0]) == approx([0.6, 1.3])
    as_if: Raw = {"privacy": {"delta": 1e-5, "cohort": 10}}
    assert noised(simulate, UNIFORM, 1.0, [0.5, -1.0], **as_if) == approx([0.7, 1.1])


def test_noise_of_uneven_weights_by_hand(simulate: Simulate) -> None:
    """With weights of 0.75 and 0.25, the sum is (0.9, 1.45), and the standard deviation 1.5."""
    algorithm = f"{__name__}:Uneven"
    assert noised(simulate, algorithm, 0.0, [0.5, -1.0]) == approx([0.9, 1.45])
    assert noised(simulate, algorithm, 1.0, [0.5, -1.0]) == approx([0.9 + 1.5 * 0.5, 1.45 - 1.5])


def test_noise_by_hand_with_a_fixed_denominator(simulate: Simulate) -> None:
    """Four clients are expected, two of whom send nothing but zeros: noise and sum are a quarter."""
    centers, fixed = [[3.0, 4.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]], {"name": "fedavg", "weights": "expected"}
    raw = quadratic(centers, fixed, {"dispatch": {"probability": 1.0}}, 1, uplink=CLIP)
    release = {"name": f"{__name__}:Given", "multiplier": 1.0, "xi": [0.5, -1.0]}
    assert simulate({**raw, "release": release}).vectors()["w"].tolist() == approx([0.55, 0.15])


def test_noise_follows_the_largest_weight(simulate: Simulate) -> None:
    """Weights of 3/4 and 1/4, by staleness: 1 / (1 + s) / K."""
    picks, delays = [[1], [0], []], [[1.0], [2.0]]
    world = {"dispatch": {"picks": picks}, "delay": {"name": "scripted", "delays": delays}, "staleness": "rounds"}
    algorithm = {"name": "fedbuff", "buffer": 2, "staleness": {"name": "poly", "exponent": 1.0}}
    raw = quadratic([[0.0, 3.0], [0.0, 0.0]], algorithm, world, 3, uplink=CLIP, local__lr=1.0)
    release = {"name": f"{__name__}:Given", "multiplier": 1.0, "xi": [1.0, 0.0]}
    result = simulate({**raw, "release": release, "privacy": {"delta": 1e-5}})
    weights = result.pandas("updates").weight.dropna()
    (step,) = result.pandas("steps").to_dict("records")
    assert sorted(weights) == approx([1 / 6, 1 / 4])
    assert step["noise_std"] == approx(2.0 / 4) and step["clip"] == 2.0
    assert step["signal_norm"] == approx(2.0 / 4) and result.vectors()["w"].tolist() == approx([0.5, 0.5])
    assert sorted(result.pandas("privacy").squared_weights) == approx([(2 / 3) ** 2, 1.0])


@pytest.mark.parametrize(
    ("release", "uplink"),
    [
        ({"name": "gaussian", "multiplier": 0.0}, []),
        ({"name": "gaussian", "multiplier": 0.0}, [{"name": "clip_norm", "max": 1e9}]),
        (None, [{"name": "clip_norm", "max": 1e9}]),
        ("none", []),
    ],
)
def test_what_changes_nothing_leaves_the_model(release: Any, uplink: Any, simulate: Simulate) -> None:
    without, found = simulate(digits()), simulate(digits(uplink=uplink, release=release))
    assert (found.vectors()["w"] == without.vectors()["w"]).all()
    if not (release and uplink) and release != {"name": "gaussian", "multiplier": 0.0}:
        assert found.digest == without.digest


def test_noise_follows_the_largest_of_bounds_that_adapt(simulate: Simulate) -> None:
    """An update is clipped by the bound that came with its model, and the noise is scaled by the largest of those."""
    adapt = {"name": "clip_norm", "max": 0.5, "adapt": {"rate": 0.05, "count_noise": 10.0}}
    result = simulate({**PRIVATE, "uplink": [adapt]})
    steps, updates = result.pandas("steps"), result.pandas("updates").query("status == 'used'")
    weights = updates.groupby("step").weight.max().to_numpy()
    scale = (2.0**-2 - 20.0**-2) ** -0.5  # the number of clipped ones shows something, too
    assert (steps.noise_std / steps["clip"]).to_numpy() == approx(scale * weights)
    ratios = steps["clip"].to_numpy()
    oldest = updates.groupby("step").version.min().to_numpy()
    assert len({*ratios}) > 2 and all(ratios[oldest == 0] >= 0.5)


def test_no_noise_on_what_is_clipped_leaves_the_bits_and_needs_no_account(simulate: Simulate) -> None:
    for clip in ({"max": 0.3}, {"max": 0.3, "adapt": {"count_noise": 0.0}}):
        raw = digits(algorithm=UNIFORM, uplink=[{"name": "clip_norm", **clip}], run__rounds=3)
        noised = simulate({**raw, "release": {"name": "gaussian", "multiplier": 0.0}})
        assert (noised.vectors()["w"] == simulate(raw).vectors()["w"]).all() and "privacy" not in noised.info


def test_a_cohort_as_large_as_it_is_leaves_the_bits(simulate: Simulate) -> None:
    as_if = {**PRIVATE, "privacy": {"delta": 1e-5, "cohort": 3}}
    one, other = simulate(PRIVATE), simulate(as_if)
    assert one.digest == other.digest and other.info["privacy"]["as_if"] == {"cohort": 3}


def test_the_noise_of_a_cohort_does_not_follow_how_many_were_drawn(simulate: Simulate) -> None:
    algorithm = {"name": "fedavg", "weights": "expected"}
    raw = override(PRIVATE, algorithm=algorithm, world={"dispatch": {"probability": 0.3}}, privacy__cohort=40)
    steps = simulate(raw).pandas("steps")
    assert steps.used.nunique() > 1 and steps.noise_std.tolist() == approx([2.0 * 0.5 / 40] * len(steps))


def test_the_same_bits_when_a_run_goes_on() -> None:
    """Its account, too, goes on."""
    one, other = carried_out(PRIVATE, PicklingPool(), stop_after=3), carried_out(PRIVATE)
    assert one.digest == other.digest and one.info["privacy"] == other.info["privacy"]


@pytest.mark.parametrize(
    "changes",
    [
        {"local__optimizer": {"name": "adam", "keep": True}, "local__lr": 0.01},
        {"model__lora": {"rank": 2}},
        {"algorithm": {"name": "ditto", "weights": "uniform"}, "data__local_test": 0.2, "run__evaluate_clients": 5},
    ],
    ids=["optimizer", "lora", "personal"],
)
def test_what_clients_train_leaves_their_epsilon(changes: Raw, simulate: Simulate) -> None:
    """Noise covers what is sent, adapters, too; how clients train, and what they keep, costs nothing."""
    raw = override(PRIVATE, **changes)
    result, dry = simulate(raw), simulate(raw, "--dry")
    assert result.info["privacy"] == dry.info["privacy"] and (result.pandas("steps").noise_std > 0).all()
    noisy = [simulate(override(raw, release__multiplier=z)).vectors() for z in (2.0, 4.0)]
    assert any((one != noisy[1][name]).any() for name, one in noisy[0].items())


@pytest.mark.slow
def test_the_same_bits_on_ray_with_several_aggregators(ray_room: None, tmp_path: Path) -> None:
    same_on_ray({**PRIVATE, "resources": {"chunk": 3, "aggregators": 2, "shards": 4}}, tmp_path)


# --- what is known before training ------------------------------------------------------------------------------------


def test_a_dry_run_of_the_quickstart_knows_epsilon(tmp_path: Path) -> None:
    changes = ["world.staleness=rounds", "uplink=[{name: clip_norm, max: 1.0}]", "privacy.delta=1e-5"]
    scenario = load_scenario("scenarios/quickstart.yaml", [*changes, "release={name: gaussian, multiplier: 4.0}"])
    result = run(scenario, dry=True, out=tmp_path, progress=False)
    found, table = result.info["privacy"], result.pandas("privacy")
    assert found["epsilon"] == approx(3.248377, abs=1e-6) and found["largest_uses"] == 20
    assert summary(result.run).facts["privacy"].startswith("epsilon 3.248377 for the most exposed client, 2.048157")
    assert found["epsilon_median"] == approx(2.048157, abs=1e-6) == table.epsilon.median()
    assert len(table) == 500 and table.epsilon.max() == found["epsilon"] == result.pandas("steps").epsilon.iloc[-1]


@pytest.mark.parametrize(
    ("picks", "delays", "multiplier", "squares", "epsilon"),
    [
        ([[0], [0]], [], 4.0, 4.0, 1.993091),  # both uses in one buffer of two
        ([[0, 1], [0, 1]], [], 4.0, 2.0, 1.356467),  # in two steps
        ([[0, 1], [0], [0], [0, 1], [1, 2], [0, 1]], [], 4.0, (4 / 1.511858) ** 2, 2.728984),  # 1, 2, 1, 0 and 1 uses
        # Weights of 1, 1 / sqrt(2) and 1/2 by staleness, beside others of 1.
        ([[0, 1], [0], [1], [0], [], [], [1]], [0.0, 1.0, 3.0], 1.0, 1 / 0.755929**2, None),
    ],
)
def test_uses_in_a_timeline_by_hand(
    picks: Any, delays: Any, multiplier: float, squares: float, epsilon: float | None, simulate: Simulate
) -> None:
    delay = {"name": "scripted", "delays": [delays or [0.0] * 6, *[[0.0] * 6] * 2]}
    world = {"dispatch": {"picks": picks}, "delay": delay, "staleness": "rounds"}
    algorithm = {"name": "fedbuff", "buffer": 2, "staleness": {"name": "poly", "exponent": 0.5}}
    raw = quadratic([0.0, 1.0, 2.0], algorithm, world, len(picks), uplink=CLIP, privacy={"delta": 1e-5})
    result = simulate({**raw, "release": {"name": "gaussian", "multiplier": multiplier}}, "--dry")
    exposed = result.pandas("privacy").set_index("client").loc[0]
    assert exposed.squared_weights == approx(squares, rel=1e-5)
    if epsilon is not None:
        assert exposed.epsilon == approx(epsilon, abs=1e-6) == result.info["privacy"]["epsilon"]


def test_an_epsilon_is_met_or_ends_the_run(simulate: Simulate) -> None:
    """Noise that meets an epsilon, given as a multiplier, gives it; a smaller epsilon ends the run a step before."""
    auto = {**PRIVATE, "release": {"name": "gaussian", "multiplier": "auto"}}
    found = simulate({**auto, "privacy": {"delta": 1e-5, "epsilon": 3.0}}, "--dry").info["privacy"]
    assert found["epsilon"] == approx(3.0)
    fixed = {**PRIVATE, "release": {"name": "gaussian", "multiplier": found["multiplier"]}}
    ended = simulate({**fixed, "privacy": {"delta": 1e-5, "epsilon": 2.0}})
    steps = simulate(fixed, "--dry").pandas("steps")
    allowed = int((steps.epsilon <= 2.0).sum())
    assert 0 < allowed < len(steps) and ended.info["totals"]["steps"] == allowed
    assert ended.info["ended_by"] == "epsilon" and ended.info["privacy"]["epsilon"] <= 2.0
    assert ended.pandas("evaluations").step.max() == allowed
    shorter = simulate({**fixed, "privacy": {"delta": 1e-5, "epsilon": 2.0}}, "--dry")
    assert shorter.info["totals"]["steps"] == allowed


def test_one_step_may_be_too_much(simulate: Simulate) -> None:
    with pytest.raises(Exception, match=r"privacy.epsilon: must be at least .* which the first server step takes"):
        simulate({**PRIVATE, "privacy": {"delta": 1e-5, "epsilon": 0.01}}, "--dry")


def test_a_run_whose_noise_follows_its_length_gets_no_other_end(simulate: Simulate) -> None:
    auto = {**PRIVATE, "release": {"name": "gaussian", "multiplier": "auto"}, "privacy": {"delta": 1e-5, "epsilon": 3}}
    result = simulate(auto)
    with pytest.raises(CannotGoOn, match="must not get another end where release's noise depends on"):
        resume(result.folder, ["run.rounds=20"], inline=True)
    with pytest.raises(CannotGoOn, match="must keep the settings of its algorithm, and noise that does not depend"):
        fork(result.folder, 1, ["local.lr=0.01"], inline=True)


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"uplink": []}, "uplink: must bound what is shaped like the model, .* got no clip_norm; add"),
        ({"uplink": [*CLIP, {"name": "quantise"}]}, "uplink.1: quantise may lengthen what .* put clip_norm last"),
        ({"uplink": [*CLIP, {"name": "top_k", "k": 3, "memory": "ef14"}]}, "uplink.1: top_k has a memory after"),
        (
            {"uplink": [*CLIP, {"name": "random_k", "share": FALLING}]},
            "uplink.1: random_k may lengthen what .* put clip",
        ),
        ({"algorithm": "fedavg"}, "algorithm.weights: must not follow from numbers of samples .* set it to uniform"),
        ({"algorithm": {"name": "fedadam"}}, "algorithm.weights: must not follow from numbers of samples"),
        ({"algorithm": {**UNIFORM, "aggregate": "median"}}, "algorithm.aggregate: must be mean with a release, .*"),
        ({"algorithm": "mifa"}, "release: must not go with mifa, which sums up for good what clients send"),
        ({"algorithm": "port"}, "release: must not go with port, whose server needs each update by itself"),
        (
            {"world.dispatch": {"per_round": 3, "policy": {"name": "power_of_choice", "candidates": 6}}},
            "world.dispatch.policy: must not depend on losses with a release",
        ),
        (
            {"algorithm": "decfedavg", "topology": "ring", "world": {}, "privacy": None},
            "release: is for algorithms with a server, got decfedavg; leave it out",
        ),
        ({"release": None}, "privacy: needs noise to account for, got none; add, for example,"),
        ({"release.multiplier": "auto"}, "release.multiplier: auto needs privacy.epsilon"),
        ({"release.multiplier": 0.0, "privacy.epsilon": 2.0}, "release.multiplier: must be above 0"),
        ({"privacy.population": 1000}, "privacy: population goes with accountant rdp or pld, got exact with 1000"),
        ({"privacy.sampling": "poisson"}, "privacy: accountant must be rdp or pld with sampling: poisson"),
    ],
)
def test_what_is_refused(changes: Raw, text: str) -> None:
    with pytest.raises(ScenarioError, match=text):
        parse_scenario(override(PRIVATE, **{key.replace(".", "__"): value for key, value in changes.items()}))


DISCRETE = {"name": "discrete", "multiplier": 0.1, "grid": 0.1}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (
            {"release": DISCRETE, "algorithm__staleness": "none"},
            "release.grid: must be so fine that the noise of each of 3 clients is 2 steps of it or more, got 0.1",
        ),
        ({"release__name": "tree"}, "release.name: must be gaussian where weights differ, because tree"),
        ({"release__name": "matrix"}, "release.name: must be gaussian where weights differ, because matrix"),
        ({"uplink": [{**CLIP[0], "adapt": {"count_noise": 0.0}}]}, "uplink.0.adapt.count_noise: must be above half of"),
        ({"uplink": [{**CLIP[0], "adapt": {}}]}, "uplink.0.adapt.count_noise: must be above half of .* got 0.15"),
    ],
    ids=["grid", "tree", "matrix", "count", "small count"],
)
def test_what_the_timeline_shows_is_refused_before_any_work(changes: Raw, text: str, tmp_path: Path) -> None:
    """`raysim check` says it without loading a model, and a run before it trains anybody."""
    raw = override(PRIVATE, **changes)
    YAML().dump(raw, tmp_path / "private.yaml")
    answer = command("check", tmp_path / "private.yaml")
    assert answer.exit_code == 2 and re.search(text, " ".join(answer.output.split()))
    with pytest.raises(Exception, match=text):
        run(parse_scenario(raw), out=tmp_path / "run", inline=True)
    assert not (tmp_path / "run" / "updates").exists()


def test_noise_without_a_delta_says_how_epsilon_is_known(simulate: Simulate, tmp_path: Path) -> None:
    raw = override(PRIVATE, privacy=None)
    YAML().dump(raw, tmp_path / "private.yaml")
    hint = "privacy: left out, so nothing says what the noise of `release` guarantees; set privacy.delta"
    assert f"note: {hint}" in command("check", tmp_path / "private.yaml").output
    for result in (simulate(raw), simulate(raw, "--dry")):
        assert hint in summary(result.run).facts["note"]
    assert "note" not in summary(simulate(PRIVATE, "--dry").run).facts


def test_statistics_of_batches_must_not_travel(simulate: Simulate) -> None:
    with pytest.raises(Exception, match=r"model.norm: must not be average with a release"):
        simulate({**PRIVATE, "model": {"name": "resnet"}}, "--set", "run.rounds=1")


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        ([], "release: must not go with fedproto, which sends no vector of parameters that noise could cover, got"),
        (["sums"], "uplink: must bound what is shaped like the model, .* got clip_norm of sums only"),
    ],
)
def test_prototypes_have_no_release(entries: list[str], text: str, simulate: Simulate) -> None:
    uplink = [{"name": "clip_norm", "max": 1.0, "entries": entries}]
    with pytest.raises(Exception, match=text):
        simulate({**PRIVATE, "algorithm": "fedproto", "uplink": uplink, "privacy": None})


def test_entries_that_no_noise_covers_are_refused_before_any_work(tmp_path: Path) -> None:
    YAML().dump(override(PRIVATE, algorithm={"name": "fednova", "weights": "uniform"}), tmp_path / "private.yaml")
    text = "release: must not go with fednova, of whose updates no clip_norm covers taken; take another algorithm"
    assert text in command("check", tmp_path / "private.yaml", "--data").output


def test_check_tells_epsilon_and_the_noise_that_meets_one(simulate: Simulate, tmp_path: Path) -> None:
    YAML().dump(PRIVATE, tmp_path / "private.yaml")
    told = simulate(PRIVATE, "--dry").info["privacy"]
    answer = command("check", tmp_path / "private.yaml", "--data")
    assert f"privacy: epsilon {told['epsilon']:.7g} for the most exposed client" in answer.output
    limit = told["epsilon"] * 0.8
    steps = simulate(override(PRIVATE, privacy__epsilon=limit), "--dry").info["totals"]["steps"]
    answer = command("check", tmp_path / "private.yaml", "--data", "--set", f"privacy.epsilon={limit}")
    assert f"privacy: the run ends after {steps} server steps, because one more would take" in answer.output
    answer = command("check", tmp_path / "private.yaml", "--set", f"privacy.epsilon={limit}")
    assert "privacy: privacy.epsilon may end the run early; --data says after how many steps" in answer.output
    assert "privacy" not in command("check", tmp_path / "private.yaml").output.split(": right")[1]
    meant = simulate(override(PRIVATE, release__multiplier="auto", privacy__epsilon=4.0), "--dry").info["privacy"]
    answer = command("check", tmp_path / "private.yaml", "--epsilon", "4")
    assert f"noise multiplier {meant['multiplier']:.7g}" in answer.output
    cases = {"noisy": {}, "plain": {"release": "none", "privacy": None}}
    YAML().dump({**PRIVATE, "sweep": {"cases": cases}}, tmp_path / "both.yaml")
    answer = command("check", tmp_path / "both.yaml", "--epsilon", "4")
    assert "both.yaml: privacy: digits-noisy, seed 0: epsilon 4 for" in answer.output and answer.exit_code == 0
    YAML().dump(digits(), tmp_path / "plain.yaml")
    answer = command("check", tmp_path / "plain.yaml", "--epsilon", "4")
    assert "plain.yaml: release: must add the noise that --epsilon finds the size of, got none; add" in answer.output
    assert answer.exit_code == 2
    assert "privacy: epsilon" in command("doctor", tmp_path / "private.yaml", "--inline").output
