"""Scenario files, and keys that are set beside them."""

from pathlib import Path

import pytest
from conftest import ROOT

from raysim import Scenario, ScenarioError, load_scenario

QUICKSTART = ROOT / "scenarios" / "quickstart.yaml"
TEXT = """
name: small
data: {name: digits, clients: 50, partition: iid}
model: mlp
algorithm: fedbuff
world: {dispatch: {per_round: 10}}
run: {rounds: 5}
"""


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


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "must be a block of keys such as data and model, got nothing"),
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
        (TEXT + "seed: 2001-13-01", "must be YAML in UTF-8: month must be in"),
        (TEXT + "seed: 2001-01-01", "seed: must be an integer, got datetime.date(2001, 1, 1)"),
        (TEXT + "local: &a {lr: *a}", "must not hold an alias of a block within that block"),
        (TEXT + "null: 1", "None: must be a key of text, got nothing; put it in quotes"),
        (TEXT + "? [a, b]\n: 1", "('a', 'b'): must be a key of text, got ('a', 'b'); put it in quotes"),
        (TEXT + "local:", "local: must be a block of keys, got nothing"),
        (TEXT + "seed: &a 1\nx: &a 2", "x: unknown key"),
        (TEXT + "x: " + "[" * 2000 + "]" * 2000, "blocks must not be nested so deep"),
        (TEXT + "x: !!int y", "invalid literal for int()"),
        (TEXT + "? [[a]]\n: 1", "keys must be text; put them in quotes"),
    ],
)
def test_files_that_hold_no_scenario_are_clear_errors(tmp_path: Path, text: str | bytes, expected: str) -> None:
    said = refusal(tmp_path, text)
    assert expected in said
    assert "\n" not in said


def test_a_file_that_is_missing_or_a_folder_is_a_clear_error(tmp_path: Path) -> None:
    missing, devices = (
        (tmp_path / "no.yaml", "No such file or directory"),
        (Path("/dev/zero"), "it is not a regular file"),
    )
    for path, expected in (missing, devices, (tmp_path, "it is not a regular file")):
        with pytest.raises(ScenarioError) as caught:
            load_scenario(path)
        assert str(caught.value).startswith(f"{path}: cannot be read: {expected}")


@pytest.mark.parametrize(
    ("value", "got"),
    [
        ("1e400", "must be an integer, got inf"),
        ("9" * 30, f"must be less than or equal to 2147483647, got {'9' * 30}"),
        ("x" * 5000, f"must be an integer, got '{'x' * 149}...{'x' * 49}'"),
    ],
)
def test_numbers_beyond_all_bounds_are_refused_in_short_messages(tmp_path: Path, value: str, got: str) -> None:
    assert refusal(tmp_path, TEXT, f"run.rounds={value}") == f"run.rounds: {got}"


def test_messages_stay_short_whatever_a_file_holds(tmp_path: Path) -> None:
    """Strange keys are quoted and cut, and of many problems the first are told."""
    said = refusal(tmp_path, TEXT + '"a\\nb": 1\n' + "? " + "k" * 5000 + "\n: 1")
    assert "'a\\nb': unknown key" in said
    assert max(map(len, said.splitlines())) < 400
    said = refusal(tmp_path, TEXT, f"model.hidden=[{', '.join(['x'] * 500)}]")
    assert (len(said.splitlines()), said.splitlines()[-1]) == (51, "and 450 more problems")


def test_names_too_long_for_a_folder_are_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, TEXT, "name=" + "x" * 201).startswith("name: must have at most 200 letters, got 'xxx")


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
        ("local.lr=", "local.lr: must be a number, got nothing"),
        ("seed=1=2", "seed: must be an integer, got '1=2'"),
        ("model.hidden.0=3", "model.hidden: must be a list, got {'0': 3}"),
    ],
)
def test_what_is_set_goes_through_the_same_checks(tmp_path: Path, override: str, expected: str) -> None:
    assert refusal(tmp_path, TEXT, override).startswith(expected)


def test_set_does_not_reach_into_lists(tmp_path: Path) -> None:
    text = TEXT.replace("model: mlp", "model: {name: mlp, hidden: [64]}")
    assert refusal(tmp_path, text, "model.hidden.0=3") == (
        "--set: model.hidden must be a block to set model.hidden.0 in, got [64]; set all of model.hidden"
    )


@pytest.mark.parametrize("override", ["local.lr=0.1,0.2", "algorithm=fedavg,fedbuff"])
def test_several_values_are_for_a_sweep(tmp_path: Path, override: str) -> None:
    lines = refusal(tmp_path, TEXT, override).splitlines()
    assert lines[-1].endswith(f"--set: {override} has 2 values; `raysim sweep` runs one after the other")
    assert len(refusal(tmp_path, TEXT, "local.lr=[1, 2]").splitlines()) == 1


def test_all_wrong_overrides_are_said_at_once(tmp_path: Path) -> None:
    assert len(refusal(tmp_path, TEXT, "seed", "local=[", "a.=1").splitlines()) == 3


def test_a_file_extends_another_one(tmp_path: Path) -> None:
    """Blocks are merged unless their names differ; keys with x- hold blocks that are repeated."""
    (tmp_path / "base.yaml").write_text(QUICKSTART.read_text())
    folder = tmp_path / "below"
    folder.mkdir()
    text = """
extends: ../base.yaml
x-slow: &slow {name: half_normal, sigma: 20}
algorithm: {name: fedasync}
local: {lr: 0.2}
world: {delay: *slow, dispatch: {per_round: 5}}
"""
    (folder / "slow.yaml").write_text(text)
    (folder / "slower.yaml").write_text("extends: slow.yaml\nworld: {delay: {sigma: 40}}")
    written = ["algorithm=fedasync", "local.lr=0.2", "world.delay.sigma=20", "world.dispatch.per_round=5"]
    assert load_scenario(folder / "slow.yaml") == load_scenario(QUICKSTART, written)
    assert load_scenario(folder / "slower.yaml") == load_scenario(QUICKSTART, [*written, "world.delay.sigma=40"])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("extends: first.yaml", r"first\.yaml: extends: must not come back to this file, got first\.yaml"),
        ("extends: [a.yaml]", r"extends: must be the path of a YAML file, as seen from this one, got \['a\.yaml'\]"),
        ("extends: none.yaml", r"none\.yaml: cannot be read"),
    ],
)
def test_what_cannot_be_extended_is_an_error(text: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "first.yaml").write_text(text)
    with pytest.raises(ScenarioError, match=problem):
        load_scenario(tmp_path / "first.yaml")
