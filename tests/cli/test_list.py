"""`raysim list`: what a scenario can name; and what frames say of their columns."""

import re
from typing import Any

import pytest
from command_line import command
from conftest import Simulate, digits
from ruamel.yaml import YAML
from typer.testing import CliRunner

from raysim.cli.app import app
from raysim.parts.part import as_tuples, names_of
from raysim.scenario.kinds import find_kinds, find_parts, kinds
from raysim.scenario.words import example

PARTS = [(kind, part) for kind in kinds() for part in kind.parts]


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def shown(*words: str) -> str:
    answer = command(*words)
    assert (answer.exit_code, answer.stderr) == (0, "")
    return "\n".join(line.rstrip() for line in answer.stdout.splitlines())


def test_all_names_are_listed_on_two_screens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = shown("list").splitlines()
    assert len(lines) <= 80
    for kind in kinds():
        assert sum(line.startswith(f"{kind.key} ") for line in lines) == 1
    words = " ".join(lines).replace(",", "").split()
    assert all(name in words for _, part in PARTS for name in names_of(part))


def test_a_kind_is_found_by_its_key_or_its_last_word() -> None:
    assert shown("list", "delay") == shown("list", "world.delay")
    about, _, table = shown("list", "delay").partition("\n\n")
    assert about.startswith("world.delay\n  one of ") and "; default none\n" in about
    lines = table.splitlines()
    assert len(lines) == 1 + len(find_kinds("delay")[0].parts)
    assert any("scripted" in line and "delays[i][0]" in line for line in lines)
    assert any("fedbuff" in line and "(Nguyen et al. 2022)" in line for line in shown("list", "algorithm").splitlines())


def test_any_key_is_told_with_its_type_default_and_meaning() -> None:
    assert shown("list", "run.rounds").startswith(
        "run.rounds\n  whole number ≥ 1 or null (rounds); default null\n  Num"
    )
    local = shown("list", "local")
    assert local.startswith("local\n\n  How a client or peer trains")
    assert "\n  lr                   number > 0 or schedule; default 0.1\n" in local
    assert "\n  groups.lr_factor     number ≥ 0 or schedule; default 1.0\n" in local
    assert "\n  checkpoint.every_s  number ≥ 0 or null (s); default 300.0\n" in re.sub(
        r"(?<=\w)  +", "  ", shown("list", "run")
    )
    assert "\n  rank     whole number ≥ 1; default 4\n" in shown("list", "model.lora")
    assert "\n  search.over.KEY.choices  list: text or " in shown("list", "sweep")
    assert shown("list", "search") == shown("list", "sweep.search")
    sigma = shown("list", "world.delay.sigma")
    assert "world.delay.sigma of half_normal\n  number ≥ 0 (`unit`); required\n  Standard deviation of the" in sigma
    assert "world.delay.sigma of log_normal\n" in sigma
    assert shown("list", "algorithm.fedbuff") == shown("list", "fedbuff")


def test_a_part_is_told_with_its_keys_source_and_an_example() -> None:
    told = shown("list", "fedbuff")
    assert told.startswith("algorithm: fedbuff\n\n  The server steps as soon as K updates have arrived")
    described = " ".join(told.split())
    assert "buffer whole number ≥ 1; default 10 How many updates make a server step (K). server_lr" in described
    assert "\n  staleness  one of const, hinge, none, poly; default poly\n" in told
    assert "\n  Nguyen, Malik, Zhan" in told
    assert told.endswith("    staleness: {name: poly, exponent: 0.5}")
    assert "sigma     number ≥ 0 (`unit`); required" in shown("list", "half_normal")


def test_a_name_of_several_kinds_shows_all() -> None:
    told = shown("list", "random")
    assert "\ntopology: random\n" in f"\n{told}"
    assert "\nworld.availability: random\n" in told


def test_a_class_of_ones_own_is_told_too() -> None:
    told = shown("list", "toys:Buffered")
    assert told.startswith("algorithm: toys:Buffered\n")
    assert "size" in told
    assert "name: toys:Buffered" in told.split("Example")[1]


def test_a_block_that_may_be_left_out_is_not_required() -> None:
    assert "block; default {}" in next(line for line in shown("list", "module").splitlines() if " args " in line)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("fedbuf", "list: must be a key, a name that `raysim list` shows, or module:Class, got 'fedbuf' (did you"),
        ("toplogy", "(did you mean 'topology'?)"),
        ("nowhere:Mine", "got 'nowhere:Mine', whose import raises ModuleNotFoundError"),
    ],
)
def test_an_unknown_name_is_refused(word: str, expected: str) -> None:
    answer = command("list", word)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert expected in answer.stderr


def test_the_example_of_every_part_can_be_put_into_a_scenario_file() -> None:
    for kind, part in PARTS:
        name = names_of(part)[0]
        block: Any = YAML(typ="safe").load(example(kind, part, name))
        for key in kind.key.split("."):
            block = block[key]
            block = block[0] if isinstance(block, list) else block
        made = part.model_validate(as_tuples(block))
        assert (type(made), block["name"]) == (part, name)
        assert find_parts(name), name


def test_frames_carry_the_meaning_of_their_columns(simulate: Simulate) -> None:
    frame = simulate(digits()).pandas("updates")
    assert frame.attrs["table"] == "updates"
    assert frame.attrs["columns"].keys() == set(frame.columns)
    assert frame.query("staleness > 0").attrs["units"]["up_bytes"] == "bytes"


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("fedbn", "model.norm: local"),
        ("FedOpt", "fedyogi"),
        ("dp_fedavg", "release: gaussian"),
        ("q_fedavg", "raysim new algorithm"),
        ("topk", "uplink: [top_k]"),
        ("hetero", "capacity"),
    ],
)
def test_names_that_people_look_for_lead_to_what_does_it(word: str, text: str) -> None:
    told = shown("list", word)
    assert text in told
    named = [found for found in re.findall(r"[a-z_]+", told) if find_parts(found)]
    assert named or word == "q_fedavg"


def test_the_shell_completes_names(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "_RAYSIM_COMPLETE": "complete_bash",
        "COMP_WORDS": "raysim list fedb",
        "COMP_CWORD": "2",
    }.items():
        monkeypatch.setenv(name, value)
    assert CliRunner().invoke(app, [], prog_name="raysim").stdout.split() == ["fedbabu", "fedbuff"]
