"""`raysim check` and `schema`: what is told of scenarios without running them."""

import json
from pathlib import Path

import pytest
from command_line import QUICKSTART, command, write
from conftest import digits
from ruamel.yaml import YAML


def test_check_says_what_is_right() -> None:
    answer = command("check", QUICKSTART, "--set", "algorithm.buffer=20")
    assert (answer.exit_code, answer.stderr) == (0, "")
    assert answer.stdout == f"{QUICKSTART}: right (quickstart, fedbuff, 500 clients)\n"


def test_check_reads_all_files_and_says_all_that_is_wrong(tmp_path: Path) -> None:
    one = write(tmp_path, digits(sed=1), "one")
    two = write(tmp_path, digits(local__lr=0, run__round=1), "two")
    answer = command("check", one, QUICKSTART, two)
    assert answer.exit_code == 2
    assert answer.stdout == f"{QUICKSTART}: right (quickstart, fedbuff, 500 clients)\n"
    lines = answer.stderr.splitlines()
    assert [line.split(": ")[:2] for line in lines] == [
        [str(one), "sed"],
        [str(two), "local.lr"],
        [str(two), "run.round"],
    ]


def test_data_that_are_here_are_divided_even_so(tmp_path: Path) -> None:
    """Without --data, as far as they are small files; others, and those that are elsewhere, are left."""
    few = {"name": "dirichlet", "alpha": 0.1, "min_size": 40}
    answer = command("check", write(tmp_path, digits(data__partition=few)))
    assert answer.exit_code == 2 and "data.partition: every client must get a" in answer.stderr
    elsewhere = {"name": "mnist", "root": str(tmp_path), "clients": 30, "partition": few}
    assert command("check", write(tmp_path, digits(data=elsewhere))).exit_code == 0


@pytest.mark.parametrize("data", [(), ("--data",)])
def test_models_of_clients_that_nothing_evaluates_are_noted(tmp_path: Path, data: tuple[str, ...]) -> None:
    raw = digits(algorithm="ditto", data__local_test=0.2)
    answer = command("check", write(tmp_path, raw), *data)
    note = "note: run.evaluate_clients: clients of ditto predict with their own models, which nothing evaluates"
    assert (answer.exit_code, answer.stdout.count(note)) == (0, 1)
    shown = digits(algorithm="ditto", data__local_test=0.2, run__evaluate_clients="all")
    assert "note" not in command("check", write(tmp_path, shown), *data).stdout


def test_a_server_that_never_steps_is_noted(tmp_path: Path) -> None:
    algorithm = {"name": "fedbuff", "buffer": 5}
    path = write(tmp_path, digits(algorithm=algorithm, world={"dispatch": {"per_round": 2}}, run={"rounds": 2}))
    note = "note: algorithm: the server never steps, because it waits for 5 updates, and 4 clients are picked in all"
    assert note in command("check", path).stdout
    assert "note" not in command("check", path, "--set", "run.rounds=3").stdout


def test_the_json_schema_takes_what_is_right_and_refuses_what_is_wrong() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(command("schema").stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$id"].startswith("urn:raysim:scenario:")
    valid = jsonschema.Draft202012Validator(schema).is_valid
    assert valid(YAML(typ="safe").load(QUICKSTART))
    own = {"name": "toys:Buffered", "size": 3}
    schedule = {"local__lr": {"name": "mine:Schedule", "start": 0.1}}
    for change in (
        {"world__delay": "none", "model": "mlp", "algorithm": own, **schedule},
        {"algorithm": "toys:Median"},
    ):
        assert valid(digits(**change)), change
    for change in (
        {"local__lr": {"name": "falling"}},
        {"sed": 1},
        {"model": "mpl"},
        {"local__lr": 0},
        {"algorithm": {"name": "fedbuff", "size": 3}},
    ):
        assert not valid(digits(**change)), change
