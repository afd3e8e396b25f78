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


def test_the_json_schema_takes_what_is_right_and_refuses_what_is_wrong() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(command("schema").stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    valid = jsonschema.Draft202012Validator(schema).is_valid
    assert valid(YAML(typ="safe").load(QUICKSTART))
    own = {"name": "toys:Buffered", "size": 3}
    for change in ({"world__delay": "none"}, {"model": "mlp"}, {"algorithm": "toys:Median"}, {"algorithm": own}):
        assert valid(digits(**change)), change
    for change in ({"sed": 1}, {"model": "mpl"}, {"local__lr": 0}, {"algorithm": {"name": "fedbuff", "size": 3}}):
        assert not valid(digits(**change)), change
