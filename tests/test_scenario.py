"""A scenario file is right, or all that is wrong with it is said at once: where, what must hold, what was got."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import toys
from conftest import Raw, Simulate, digits, quadratic
from ruamel.yaml import YAML

from raysim import Scenario, ScenarioError, load_scenario, parse_scenario
from raysim.sweep import load_sweep

SHIPPED = sorted((Path(__file__).parent.parent / "scenarios").rglob("*.yaml"))

TEXT = """
name: small
data: {name: digits, clients: 50, partition: iid}
model: mlp
algorithm: fedbuff
world: {dispatch: {per_round: 10}}
run: {rounds: 5}
"""


def problems(raw: Any) -> dict[str, str]:
    """What is said of plain data, by path."""
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(raw)
    return {problem.path: problem.text for problem in caught.value.problems}


def problem(raw: Any) -> str:
    """The only one, as users see it."""
    ((path, text),) = problems(raw).items()
    return f"{path}: {text}"


def load(folder: Path, text: str | bytes, *overrides: str) -> Scenario:
    path = folder / "s.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_scenario(path, overrides)


def refusal(folder: Path, text: str | bytes, *overrides: str) -> str:
    """What is said of a file, without its own name."""
    with pytest.raises(ScenarioError) as caught:
        load(folder, text, *overrides)
    lines = str(caught.value).splitlines()
    assert all(line.startswith(f"{folder / 's.yaml'}: ") for line in lines)
    return "\n".join(line.removeprefix(f"{folder / 's.yaml'}: ") for line in lines)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_shipped_scenario_is_right(path: Path) -> None:
    assert all(scenario.name for scenario in load_sweep(path).scenarios())


@pytest.mark.parametrize(
    ("override", "expected"),
    [("seed=0", 1 + (1 + 3**-0.5) / 2), ("algorithm.staleness=none", 2.0), ("algorithm=fedavg", 3.0)],
)
def test_the_run_by_hand_ends_where_its_comments_say(simulate: Simulate, override: str, expected: float) -> None:
    (path,) = (path for path in SHIPPED if path.stem == "by_hand")
    result = simulate(YAML(typ="safe").load(path), "--set", override)
    assert result.vectors()["w"].tolist() == pytest.approx([expected], abs=1e-6)


# --- what is wrong ----------------------------------------------------------------------------------------------------


def test_every_problem_is_said_at_once() -> None:
    raw = digits(algorithm={"name": "fedbuf"}, local={"lr": "fast", "epochz": 2}, sed=1, run={}, seed=-1)
    raw["world"] = {"dispatch": {"per_round": 10, "concurrency": 3}, "delay": {"name": "half_normal", "sigma": -5}}
    found = problems(raw)
    assert found["algorithm.name"].endswith("got 'fedbuf' (did you mean 'fedbuff'?)")
    assert found["local.lr"] == "must be a number, got 'fast'"
    assert found["local.epochz"].startswith("unknown key (did you mean 'epochs'?); known here: optimizer, lr,")
    assert found["sed"].startswith("unknown key (did you mean 'seed'?); known here: name, seed, data")
    assert found["run.rounds"] == "must be given, got nothing"
    assert found["seed"] == "must be greater than or equal to 0, got -1"
    expected = "must have exactly one of per_round, concurrency and picks, got ['per_round', 'concurrency']"
    assert found["world.dispatch"] == expected
    assert found["world.delay.sigma"] == "must be greater than or equal to 0, got -5"
    assert len(found) == 8


def compute(**changes: Raw) -> Raw:
    """A delay."""
    one = {"name": "constant", "value": 1.0}
    return {"name": "compute", "flops_per_s": one, "up_bytes_per_s": one, "down_bytes_per_s": one, **changes}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"data__partition": {"name": "dirichlet", "alpa": 1}}, "data.partition.alpha: must be given, got nothing"),
        ({"data__partition": "dirichlet"}, "data.partition.alpha: must be given, got nothing"),
        ({"data__partition": ["iid"]}, "data.partition: must be a name, or a block of keys with one, got ['iid']"),
        ({"data__clients": None}, "data.clients: must be an integer, got None"),
        ({"data": "digits"}, "data.clients: must be given, got nothing"),
        ({"model": None}, "model: must be a name, or a block of keys with one, got None"),
        ({"model": {}}, "model: must have a name, of those that `raysim list` shows, got {}"),
        ({"model__name": 5}, "model.name: must be one of 'vector', 'linear', 'mlp', 'cnn', 'fedf_admm_cnn', "),
        ({"model": "mpl"}, "'timm', got 'mpl' (did you mean 'mlp'?)"),
        ({"model__hidden": [64, "a"]}, "model.hidden.1: must be an integer, got 'a'"),
        ({"model__hidden": {"a": 1}}, "model.hidden: must be a list, got {'a': 1}"),
        ({"local": None}, "local: must be a block of keys, got None"),
        ({"local": [1]}, "local: must be a block of keys, got [1]"),
        ({"local__betas": [0.9]}, "local.betas.1: must be given, got nothing"),
        ({"local__betas": [0.9, 0.9, 0.9]}, "local.betas: must have at most 2, got [0.9, 0.9, 0.9]"),
        ({"local__lr": float("nan")}, "local.lr: must be a finite number, got nan"),
        ({"local__drop_last": "yes"}, "local.drop_last: must be true or false, got 'yes'"),
        ({"local__optimizer": "sdg"}, "must be 'sgd' or 'adam', got 'sdg' (did you mean 'sgd'?)"),
        ({"local": {1: 2}}, "local.1: must be a key of text, got 1; put it in quotes"),
        ({"resources__chunk": 1.5}, "resources.chunk: must be an integer, got 1.5"),
        ({"seed": True}, "seed: must be an integer, got True"),
        ({"name": "a b"}, "name: must be text that matches ^[A-Za-z0-9][A-Za-z0-9._-]*$, got 'a b'"),
        ({"name": 3}, "name: must be text, got 3"),
        ({"algorithm": {"name": "fedbuff", "staleness": "pol"}}, "algorithm.staleness.name: must be one of 'const', "),
        ({"algorithm": {"name": "fedbuff", "staleness": {"name": "hinge", "slop": 1}}}, "(did you mean 'slope'?)"),
        ({"world__delay": "constant"}, "world.delay.value: must be given, got nothing"),
        ({"world__delay": {"name": "uniform", "high": 1, "unit": "hours"}}, "must be 'rounds' or 'seconds', got 'hou"),
        (
            {"world__dispatch": {}},
            "world.dispatch: must have exactly one of per_round, concurrency and picks, got none",
        ),
        ({"world__dispatch": {"picks": [[0, "a"]]}}, "world.dispatch.picks.0.1: must be an integer, got 'a'"),
        (
            {"world__delay": {"name": "uniform", "low": 3, "high": 2}},
            "world.delay: `low` must be at most `high`, got 3.0 and 2.0; swap them",
        ),
        (
            {"world__delay": compute(flops_per_s={"name": "uniform", "high": 0})},
            "world.delay: `flops_per_s` must be po",
        ),
        ({"world__delay": compute(up_bytes_per_s={"name": "constant", "value": 0})}, "`up_bytes_per_s` must be positi"),
        ({"world__delay": compute(down_bytes_per_s={"name": "half_normal", "sigma": 0})}, "`down_bytes_per_s` must be"),
        ({"world__delay": compute(down_bytes_per_s={"name": "exponential", "mean": 0})}, "`down_bytes_per_s` must be"),
        (
            {"world__availability": {"name": "periodic", "period": 24, "on": 0.25, "slot": 8}},
            "world.availability: `slot` must be at most `on` * `period`, 6, or some clients are never there, got 8",
        ),
        ({"world__availability": {"name": "always", "slot": 2}}, "world.availability.slot: unknown key; known here: "),
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


SECONDS = {"name": "constant", "value": 1, "unit": "seconds"}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"world__dispatch": {"per_round": 31}},
            "world.dispatch.per_round: must be at most the number of clients, 30, ",
        ),
        ({"world__dispatch": {"concurrency": 31}}, "world.dispatch.concurrency: must be at most the number of clients"),
        ({"world__dispatch": {"picks": [[0]]}}, "world.dispatch.picks: must have a list for each of 8 rounds, got 1"),
        ({"world__dispatch": {"picks": [[-1], [30]] * 4}}, "must be numbers of clients, 0 to 29, got [-1, 30]"),
        (
            {"world__dispatch": {"picks": [[0, 1]] * 7 + [[2, 3, 2]]}},
            "world.dispatch.picks.7: must name a client once on",
        ),
        (
            {"world": {"dispatch": {"picks": [[0, 1], [0]] * 4}, "delay": {"name": "scripted", "delays": [[0.0] * 7]}}},
            "world.delay.delays: must hold a delay for every time that a client is picked, got 7 of 8 for client 0, "
            "0 of 4 for client 1; add the others",
        ),
        ({"world__dropout": {"probability": 1}}, "world.dropout.probability: must be less than 1, or no update ever"),
        (
            {"world__availability": {"name": "periodic", "period": 1, "slot": 0.1}},
            "world.availability: `on` * `period` must be at least a round, or some are never there, got 0.5",
        ),
        ({"run__evaluate_clients": 3}, "run.evaluate_clients: needs samples of each client's own to test on"),
        (
            {"data__partition": {"name": "classes", "per_client": 11}},
            "data: partition classes: `per_client` must be at",
        ),
        ({"model": "vector"}, "model.name: the model vector goes with the data quadratic only, got vector on digits"),
        (
            {"algorithm": "fedavg", "world": {"dispatch": {"concurrency": 3}, "delay": SECONDS}},
            "world.dispatch: must be per_round or picks, for fedavg steps at the end of rounds, got concurrency with",
        ),
    ],
)
def test_parts_that_are_right_alone_must_fit_together(change: Raw, expected: str) -> None:
    assert expected in problem(digits(**change))


@pytest.mark.parametrize(
    ("delay", "dispatch", "least"),
    [
        ({"name": "half_normal", "sigma": 5, "rounding": "ceil"}, {}, 1),
        ({"name": "uniform", "low": 1.5, "high": 2, "rounding": "ceil"}, {}, 2),
        ({"name": "constant", "value": 1}, {}, 1),
        ({"name": "constant", "value": 0.5, "rounding": "nearest"}, {}, 1),
        ({"name": "scripted", "delays": [[2.0], [3.5]]}, {}, 2),
        ({"name": "uniform", "low": 9, "high": 10, "unit": "seconds"}, {"round_s": 9}, 9),
        (compute() | {"latency_s": 7}, {"round_s": 7}, 7),
    ],
)
def test_an_algorithm_that_discards_late_updates_needs_some_in_time(delay: Raw, dispatch: Raw, least: int) -> None:
    """One that keeps them needs some before the end."""
    world = {"dispatch": {"per_round": 3, **dispatch}, "delay": delay}
    end = dispatch.get("round_s", 1)
    unit = "seconds" if dispatch else "rounds"
    assert problem(digits(algorithm="fedavg", world=world)) == (
        f"world.delay: must leave room for delays of less than {end} {unit}, for fedavg discards what arrives after "
        f"its round, got none below {least}"
    )
    assert parse_scenario(digits(algorithm="fedasync", world=world))
    assert "for the run is over then" in problem(digits(algorithm="fedasync", world=world, run={"rounds": 1}))


@pytest.mark.parametrize(
    "delay",
    [
        "none",
        {"name": "half_normal", "sigma": 20},
        {"name": "constant", "value": 0, "rounding": "ceil"},
        {"name": "uniform", "low": 0.5, "high": 9},
        {"name": "log_normal", "median": 9, "sigma": 1},
        {"name": "log_normal", "median": 9, "sigma": 0, "unit": "seconds"},
        compute(latency_s=3.0),
    ],
)
def test_what_may_be_in_time_is_let_through(delay: Any) -> None:
    assert parse_scenario(digits(algorithm="fedavg", world__delay=delay))


def test_quadratic_data_has_no_samples_for_a_server() -> None:
    raw = quadratic([1.0], "fedavg", {"dispatch": {"per_round": 1}}, 1)
    raw["server_data"] = {"name": "in_domain", "samples": 1}
    assert problem(raw) == "server_data: the quadratic data has no samples for the server; leave it out"


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "must be a block of keys such as data and model, got None"),
        ("- a", "must be a block of keys such as data and model, got ['a']"),
        ("a: b: c", "must be YAML in UTF-8: line 1, column 5: mapping values are not allowed here"),
        ("a: [1", "must be YAML in UTF-8: line 1, column 6: while parsing a flow sequence, expected ',' or ']', but"),
        (TEXT + "seed: 1\nseed: 2", 'found duplicate key "seed" with value "2" (original value: "1")'),
        (TEXT + "---\nname: other", "expected a single document in the stream, but found another document"),
        (TEXT + "x: !!python/object:os.system {}", "line 8, column 4: could not determine a constructor for the tag"),
        (TEXT + "x: *nothing", "found undefined alias 'nothing'"),
        ("\tname: x", "found character '\\t' that cannot start any token"),
        ("a: \0", "must be YAML in UTF-8: unacceptable character #x0000"),
        (b"name: \xff", "must be YAML in UTF-8: 'utf-8' codec can't decode byte 0xff"),
        (TEXT + "seed: 2001-13-01", "must be YAML in UTF-8: month must be in 1..12"),
        (TEXT + "seed: 2001-01-01", "seed: must be an integer, got datetime.date(2001, 1, 1)"),
        (TEXT + "local: &a {lr: *a}", "must not hold an alias of a block within that block"),
        (TEXT + "null: 1", "None: must be a key of text, got None; put it in quotes"),
        (TEXT + "? [a, b]\n: 1", "('a', 'b'): must be a key of text, got ('a', 'b'); put it in quotes"),
        (TEXT + "local:", "local: must be a block of keys, got None"),
    ],
)
def test_files_that_hold_no_scenario_are_clear_errors(tmp_path: Path, text: str | bytes, expected: str) -> None:
    said = refusal(tmp_path, text)
    assert expected in said
    assert "\n" not in said


def test_a_file_that_is_missing_or_a_folder_is_a_clear_error(tmp_path: Path) -> None:
    for path, expected in ((tmp_path / "no.yaml", "No such file or directory"), (tmp_path, "Is a directory")):
        with pytest.raises(ScenarioError) as caught:
            load_scenario(path)
        assert str(caught.value) == f"{path}: cannot be read: {expected}"


def test_numbers_are_those_of_yaml_1_2(tmp_path: Path) -> None:
    local = load(tmp_path, TEXT + "local: {lr: 1e-3, momentum: 0, weight_decay: 5.0E-4}").local
    assert (local.lr, local.momentum, local.weight_decay) == (0.001, 0.0, 0.0005)


def test_a_bare_name_stands_for_a_block(tmp_path: Path) -> None:
    spelled_out = TEXT.replace("iid", "{name: iid}").replace("mlp", "{name: mlp}").replace("fedbuff", "{name: fedbuff}")
    assert load(tmp_path, TEXT) == load(tmp_path, spelled_out)
    assert load(tmp_path, TEXT, "world.delay=none", "server_data=none") == load(tmp_path, TEXT)


# --- overrides --------------------------------------------------------------------------------------------------------


def test_set_replaces_keys_makes_blocks_and_goes_through_bare_names(tmp_path: Path) -> None:
    scenario = load(
        tmp_path,
        TEXT,
        "algorithm.buffer=20",
        "algorithm.staleness.name=hinge",
        "model.hidden=[8, 4]",
        "local.lr = 1e-2",
        "world.delay={name: constant, value: 2}",
        "world.dropout.permanent=true",
        "name='other'",
    )
    resolved = scenario.resolved()
    assert resolved["algorithm"]["buffer"] == 20
    assert resolved["algorithm"]["staleness"]["name"] == "hinge"
    assert resolved["model"]["hidden"] == [8, 4]
    assert resolved["local"]["lr"] == 0.01
    assert resolved["world"]["delay"]["value"] == 2.0
    assert resolved["world"]["dropout"]["permanent"] is True
    assert resolved["name"] == "other"


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("", "--set: must be key.path=value, got ''"),
        ("algorithm.buffer", "--set: must be key.path=value, got 'algorithm.buffer'"),
        ("algorithm..buffer=3", "--set: must be key.path=value, got 'algorithm..buffer=3'"),
        ("=3", "--set: must be key.path=value, got '=3'"),
        ("local={lr: 1", "--set: local must be set to YAML, got '{lr: 1': line 1, column 7: while parsing a flow mapp"),
        ("run.rounds.x=3", "--set: run.rounds must be a block to set run.rounds.x in, got 5"),
        ("data.partition.0.x=3", "data.partition.0: unknown key; known here: name"),
        ("algoritm.buffer=3", "algoritm: unknown key (did you mean 'algorithm'?); known here: name, seed, data"),
        ("local.lr=", "local.lr: must be a number, got None"),
        ("seed=1=2", "seed: must be an integer, got '1=2'"),
        ("local.lr=&a [*a]", "must not hold an alias of a block within that block"),
        ("model.hidden.0=3", "model.hidden: must be a list, got {'0': 3}"),
    ],
)
def test_what_is_set_goes_through_the_same_checks(tmp_path: Path, override: str, expected: str) -> None:
    assert refusal(tmp_path, TEXT, override).startswith(expected)


def test_set_does_not_reach_into_lists(tmp_path: Path) -> None:
    text = TEXT.replace("model: mlp", "model: {name: mlp, hidden: [64]}")
    assert refusal(tmp_path, text, "model.hidden.0=3") == (
        "--set: model.hidden must be a block to set model.hidden.0 in, got [64]"
    )


def test_all_wrong_overrides_are_said_at_once(tmp_path: Path) -> None:
    assert len(refusal(tmp_path, TEXT, "seed", "local=[", "a.=1").splitlines()) == 3


# --- algorithms of one's own ------------------------------------------------------------------------------------------


def test_an_algorithm_may_be_a_class_of_ones_own() -> None:
    scenario = parse_scenario(digits(algorithm={"name": "toys:Buffered", "size": 3}))
    assert type(scenario) is Scenario
    assert isinstance(scenario.algorithm, toys.Buffered)
    assert (scenario.algorithm.size, scenario.algorithm.name) == (3, "toys:Buffered")
    assert isinstance(parse_scenario(digits(algorithm="toys:Counting")).algorithm, toys.Counting)


@pytest.mark.parametrize(
    ("algorithm", "expected"),
    [
        (
            "nowhere:Mine",
            "algorithm.name: must be module:Class, with the module here or on PYTHONPATH, got 'nowhere:Mi",
        ),
        ("toys:Nothing", "whose import raises AttributeError: module 'toys' has no attribute 'Nothing'"),
        (".toys:Counting", "whose import raises TypeError: the 'package' argument is required"),
        ("broken:Mine", "whose import raises ZeroDivisionError: division by zero"),
        (":Mine", "whose import raises ValueError: Empty module name"),
        (
            "json:loads",
            "must name a subclass of raysim.algorithms.Central or Peer, got 'json:loads', which is <function loads",
        ),
        ("json:JSONDecoder", "must name a subclass of raysim.algorithms.Central or Peer, got 'json:JSONDecoder'"),
        ("raysim.algorithms:Central", "must name a class that defines step, trigger, weigh, got 'raysim.algorithms:"),
        ("raysim.algorithms:FedBuff", "must name a class whose field is `name: str`, got 'raysim.algorithms:FedBuff'"),
        (
            {"name": "toys:Buffered", "siz": 1},
            "algorithm.siz: unknown key (did you mean 'size'?); known here: name, size",
        ),
        ({"name": "toys:Buffered", "size": 0.5}, "algorithm.size: must be an integer, got 0.5"),
    ],
)
def test_a_class_that_cannot_be_an_algorithm_is_a_clear_error(
    algorithm: Any, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    assert expected in problem(digits(algorithm=algorithm))


# --- its JSON Schema --------------------------------------------------------------------------------------------------


def test_the_schema_says_what_keys_mean() -> None:
    """In the words below the fields, a base's where a part has none of its own."""
    schema = Scenario.model_json_schema()["$defs"]
    assert schema["Schedule"]["properties"]["evaluate_every"]["description"].startswith("Rounds from one evaluation")
    assert schema["FedBuff"]["properties"]["buffer"]["description"] == "How many updates make a server step (K)."
    units = {schema[part]["properties"]["unit"]["description"] for part in ("ScriptedDelay", "UniformDelay")}
    assert units == {"Of delays, and so of all virtual time."}


# --- what a scenario is -----------------------------------------------------------------------------------------------

SCENARIOS = [
    digits(),
    digits(algorithm={"name": "toys:Buffered", "size": 3}),
    quadratic([[1, 2], [3, 4.5]], "fedasync", {"dispatch": {"picks": [[0], [1]]}}, 2, data__samples=[1, 2]),
    *({key: block for key, block in YAML(typ="safe").load(path).items() if key != "sweep"} for path in SHIPPED),
]


@pytest.mark.parametrize("raw", SCENARIOS, ids=lambda raw: raw["name"])
def test_what_is_resolved_is_the_same_scenario(raw: Raw) -> None:
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
