"""A scenario is right, or all that is wrong with it is said at once: where, what must hold, what was got."""

import copy
import json
from typing import Annotated, Any

import pytest
from conftest import Raw, digits, quadratic
from pydantic import ValidationError
from refusals import compute, problems

from raysim import Scenario, parse_scenario
from raysim.algorithms import DPSGD, FedAvg, FedBuff
from raysim.data.federation.partition import Iid
from raysim.parts.part import OneOf, Part, names_of, parts_of
from raysim.scenario import RunSettings
from raysim.world.delay import HalfNormalDelay

# --- what is wrong ----------------------------------------------------------------------------------------------------


def test_every_problem_is_said_at_once() -> None:
    raw = digits(algorithm={"name": "fedbuf"}, local={"lr": "fast", "epochz": 2}, sed=1, run={}, seed=-1)
    raw["world"] = {"dispatch": {"per_round": 10, "concurrency": 3}, "delay": {"name": "half_normal", "sigma": -5}}
    found = problems(raw)
    assert found["algorithm.name"].endswith("got 'fedbuf' (did you mean 'fedbuff'?)")
    assert found["local.lr"] == "must be a number, got 'fast'"
    assert found["local.epochz"].startswith("unknown key (did you mean 'epochs'?); known here: optimizer, lr,")
    assert found["sed"].startswith("unknown key (did you mean 'seed'?); known here: name, seed, data")
    assert found["run"].startswith("rounds must be given, or `until`, got neither; set run.rounds")
    assert found["seed"] == "must be greater than or equal to 0, got -1"
    several = "must have exactly one of per_round, probability, concurrency, per_tier and picks"
    assert found["world.dispatch"] == f"{several}, got ['per_round', 'concurrency']"
    assert found["world.delay.sigma"] == "must be greater than or equal to 0, got -5"
    assert len(found) == 8


def adam(**keys: object) -> dict[str, object]:
    return {"name": "adam", **keys}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"data__partition": {"name": "dirichlet", "alpa": 1}}, "data.partition.alpha: must be given, got nothing"),
        ({"data__partition": ["iid"]}, "data.partition: must be a name, or a block of keys with one, got ['iid']"),
        ({"data__clients": None}, "data.clients: must be an integer, got nothing"),
        ({"data": "digits"}, "data.clients: must be given, got nothing"),
        ({"data": {"name": "digits", "clients": 3}}, "data.partition: must be given, got nothing"),
        ({"model": None}, "model: must be a name, or a block of keys with one, got nothing"),
        ({"model": {}}, "model: must have a name, of those that `raysim list` shows, got {}"),
        ({"model__name": 5}, "model.name: must be one of 'vector', 'linear', 'mlp', 'cnn', 'fedf_admm_cnn', "),
        ({"model": "mpl"}, "'module', or a custom class, as module:Class, got 'mpl' (did you mean 'mlp'?)"),
        ({"model__hidden": [64, "a"]}, "model.hidden.1: must be an integer, got 'a'"),
        ({"model__hidden": {"a": 1}}, "model.hidden: must be a list, got {'a': 1}"),
        ({"local": None}, "local: must be a block of keys, got nothing"),
        ({"local__optimizer": adam(betas=[0.9])}, "local.optimizer.betas.1: must be given, got nothing"),
        ({"local__optimizer": adam(betas=[0.9] * 3)}, "local.optimizer.betas: must have at most 2, got [0.9, "),
        ({"local__optimizer": adam(betas=[0.9, 1.0])}, "local.optimizer.betas.1: must be less than 1, got 1.0"),
        ({"local__lr": float("nan")}, "local.lr: must be a finite number, got nan"),
        ({"local__drop_last": "yes"}, "local.drop_last: must be true or false, got 'yes'"),
        ({"local__optimizer": "sdg"}, "local.optimizer.name: must be one of 'sgd', 'adam', 'adamw', "),
        ({"local": {"optimizer": "sgd", "momentum": 0.9}}, "(did you mean 'local.optimizer.momentum'?)"),
        ({"local__optimizer": adam(momentum=0.9)}, "local.optimizer.momentum: unknown key"),
        ({"local__optimizer": adam(weight_decay=0.1)}, "unknown key (did you mean 'local.weight_decay'?)"),
        ({"local__optimizer": {"name": "sgd", "nesterov": True}}, "nesterov needs a momentum above 0"),
        ({"local__gradients": [{"name": "clip_norm", "max": 0}]}, "local.gradients.0.max: must be greater than 0, "),
        ({"local__gradients": ["clip"]}, "local.gradients.0.name: must be one of 'clip_norm', "),
        ({"local": {1: 2}}, "local.1: must be a key of text, got 1; put it in quotes"),
        ({"resources__chunk": 1.5}, "resources.chunk: must be an integer, got 1.5"),
        ({"seed": True}, "seed: must be an integer, got True"),
        ({"name": "a b"}, "name: must be text that matches ^[A-Za-z0-9][A-Za-z0-9._-]*$, got 'a b'"),
        ({"algorithm": {"name": "fedbuff", "staleness": "pol"}}, "algorithm.staleness.name: must be one of 'const', "),
        ({"algorithm": {"name": "fedbuff", "staleness": {"name": "hinge", "slop": 1}}}, "(did you mean 'slope'?)"),
        ({"world__delay": "constant"}, "world.delay.value: must be given, got nothing"),
        ({"world__delay": {"name": "uniform", "high": 1, "unit": "hours"}}, "must be 'rounds' or 'seconds', got 'hou"),
        ({"world__dispatch": {}}, "world.dispatch: must have exactly one of per_round, probability, concurrency,"),
        ({"world__dispatch": {"picks": [[0, "a"]]}}, "world.dispatch.picks.0.1: must be an integer, got 'a'"),
        ({"world__delay": {"name": "uniform", "low": 3, "high": 2}}, "world.delay: `low` must be at most `high`, got"),
        ({"world__delay": compute(flops_per_s={"name": "uniform", "high": 0})}, "world.delay: `flops_per_s` must be"),
        ({"world__delay": compute(up_bytes_per_s={"name": "constant", "value": 0})}, "`up_bytes_per_s` must be positi"),
        (
            {"world__availability": {"name": "periodic", "period": 24, "on": 0.25, "slot": 8}},
            "world.availability: `slot` must be at most `on` * `period`, 6, or some clients are never there, got 8",
        ),
    ],
)
def test_a_problem_names_its_path_what_must_hold_and_what_was_got(change: Raw, expected: str) -> None:
    found = problems(digits(**change))
    assert any(expected in f"{path}: {text}" for path, text in found.items()), found


def test_a_value_of_several_kinds_is_one_problem() -> None:
    raw = quadratic(["x", {"a": 1}, [1, 2]], "fedavg", {"dispatch": {"per_round": 1}}, 1)
    assert problems(raw) == {
        "data.centers.0": "must be a list, got 'x', or must be a number, got 'x'",
        "data.centers.1": "must be a list, got {'a': 1}, or must be a number, got {'a': 1}",
    }


# --- its JSON Schema --------------------------------------------------------------------------------------------------


def test_the_schema_says_what_keys_mean() -> None:
    """In the words below the fields, a base's where a part has none of its own."""
    schema = Scenario.model_json_schema()["$defs"]
    assert schema["RunSettings"]["properties"]["evaluate_every"]["description"].startswith("Rounds from one evaluation")
    assert schema["FedBuff"]["properties"]["buffer"]["description"] == "How many updates make a server step (K)."
    units = {schema[part]["properties"]["unit"]["description"] for part in ("ScriptedDelay", "UniformDelay")}
    assert units == {"Unit of delays, and so of all virtual time."}


# --- what a scenario is -----------------------------------------------------------------------------------------------


SCENARIOS = {
    "defaults": digits(),
    "own part": digits(algorithm={"name": "toys:Buffered", "size": 3}),
    "picks": quadratic([[1, 2], [3, 4.5]], "fedasync", {"dispatch": {"picks": [[0], [1]]}}, 2, data__samples=[1, 2]),
}


@pytest.mark.parametrize("which", SCENARIOS)
def test_what_is_resolved_is_the_same_scenario(which: str) -> None:
    """`test_shipped_files.py` says so of all scenarios there."""
    raw = SCENARIOS[which]
    before = copy.deepcopy(raw)
    scenario = parse_scenario(raw)
    again = parse_scenario(json.loads(json.dumps(scenario.resolved())))
    assert again == scenario
    assert again.hash == scenario.hash
    assert again.resolved() == scenario.resolved()
    assert raw == before, "parsing changed what it was given"


def test_a_resolved_scenario_names_every_key() -> None:
    resolved = parse_scenario(digits()).resolved()
    assert set(resolved) == set(Scenario.model_fields)
    assert resolved["algorithm"] == {
        "name": "fedbuff",
        "buffer": 10,
        "server_lr": 1.0,
        "staleness": {"name": "poly", "exponent": 0.5},
        "server": {
            "name": "sgd",
            "lr": 1.0,
            "delay_adaptive": "none",
            "delay_threshold": 1.0,
            "momentum": 0.0,
            "nesterov": False,
        },
        "aggregate": {"name": "mean"},
    }


def test_the_hash_is_of_all_that_numbers_depend_on() -> None:
    """Not of the name, nor of how many workers a run has; but of whether they are GPUs."""
    plain = parse_scenario(digits()).hash
    several = digits(resources__shards=2)
    together = parse_scenario({**several, "resources": {**several["resources"], "aggregators": 2}}).hash
    assert together == parse_scenario(several).hash != plain
    same = {"name": "other", "resources__client_actors": 7, "resources__wait_s": 9.0}
    same |= {"resources__cpus_per_client": 2}
    for key, value in same.items():
        assert parse_scenario(digits(**{key: value})).hash == plain, key
    others = {"seed": 1, "resources__chunk": 4, "resources__threads": 2, "local__lr": 0.2, "run__rounds": 9}
    others |= {"resources__gpus_per_client": 0.25, "resources__gpus_per_aggregator": 1}
    others |= {"algorithm": "fedasync", "data__clients": 31, "model__hidden": [17], "world__delay": "none"}
    hashes = {parse_scenario(digits(**{key: value})).hash for key, value in others.items()}
    assert len(hashes | {plain}) == len(others) + 1


def test_spelling_does_not_change_the_hash() -> None:
    """Numbers written as integers, defaults written out, keys in another order."""
    raw = digits(local={"batch_size": 16, "lr": 1, "epochs": 1})
    assert parse_scenario(raw).hash == parse_scenario(digits(local={"lr": 1.0, "batch_size": 16})).hash


def test_a_scenario_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        parse_scenario(digits()).seed = 1  # type: ignore[misc]


# --- parts, their names, and fields that hold one of several ----------------------------------------------------------


class Shape(Part):
    """A base."""

    name: str


class Square(Shape):
    """A part."""

    name: str = "square"
    side: float = 1.0


class Rhombus(Square):
    """A part with a name of its own, of a class with another."""

    name: str = "rhombus"


SHAPES = (Square, Rhombus)


class Picture(Part):
    """A block."""

    shape: Annotated[Shape, OneOf(SHAPES)] = Square()


@pytest.mark.parametrize(
    ("part", "names"),
    [(FedBuff, ("fedbuff",)), (DPSGD, ("d_psgd", "cdsgd")), (Rhombus, ("rhombus",)), (Shape, ()), (RunSettings, ())],
)
def test_a_part_s_names_are_those_that_its_class_declares(part: type[Part], names: tuple[str, ...]) -> None:
    assert names_of(part) == names


@pytest.mark.parametrize(("given", "kind"), [("square", Square), ({"name": "rhombus", "side": 2.0}, Rhombus)])
def test_a_name_chooses_a_part_with_or_without_other_keys(given: Any, kind: type[Shape]) -> None:
    assert type(Picture.model_validate({"shape": given}).shape) is kind
    assert parts_of(Picture.model_fields["shape"].rebuild_annotation()) == [Square, Rhombus]


@pytest.mark.parametrize(
    ("part", "settings"), [(FedBuff, {}), (FedAvg, {}), (Iid, {}), (DPSGD, {}), (HalfNormalDelay, {"sigma": 1.0})]
)
def test_a_part_refuses_the_name_of_another(part: type[Part], settings: dict[str, Any]) -> None:
    for name in names_of(part):
        assert part(name=name, **settings).name == name
    with pytest.raises(ValidationError, match=names_of(part)[0]):
        part(name="square", **settings)


def test_a_part_may_be_named_by_module_and_class() -> None:
    assert Square(name="shapes:Square").name == "shapes:Square"


def test_parts_of_one_name_or_of_none_are_refused() -> None:
    with pytest.raises(TypeError, match="name 'square': must belong to one part only, got it in Square and in Square"):
        OneOf((Square, Square))
    with pytest.raises(TypeError, match="Shape: must have a name"):
        OneOf((Square, Shape))
