"""Partitions that are given."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import digits
from data_sets import NO_SERVER
from data_sets import digits as data_of

from raysim import parse_scenario
from raysim.data import Split, federate
from raysim.data.federation.indices import Indices
from raysim.parts.rng import generator

SPLIT = Split(np.zeros((6, 2), np.float32), np.arange(6) % 2)
PARTS = [[0, 3], [1], [5, 4]]


def divided(partition: Indices, clients: int = 3) -> list[list[int]]:
    return [rows.tolist() for rows in partition.split(SPLIT, clients, generator(0, "partition"))]


def test_every_form_says_the_same(tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text(json.dumps(PARTS))
    assert divided(Indices(path=str(tmp_path / "list.json"))) == PARTS
    np.savez(tmp_path / "b.npz", client=[0, 1, -1, 0, 2, 2])
    assert divided(Indices(path=str(tmp_path / "b.npz"))) == [[0, 3], [1], [4, 5]]
    assert divided(Indices.model_validate({"rows": [np.array(part) for part in PARTS]})) == PARTS


def test_a_sample_may_be_held_twice_if_that_is_allowed() -> None:
    assert divided(Indices(rows=((0, 1), (1,)), overlap=True), 2) == [[0, 1], [1]]
    shared = {"name": "indices", "rows": [[*range(9)], [*range(5, 20)]], "overlap": True}
    server = {"name": "in_domain", "samples": 12, "split": "train"}
    federation = federate(data_of(clients=2, partition=shared, local_test="test"), NO_SERVER, seed=0)
    assert federation.samples.tolist() == [9, 15]
    assert parse_scenario(
        digits(data__clients=2, data__partition=shared, server_data=server, world__dispatch={"per_round": 1})
    ).data.partition.overlap


@pytest.mark.parametrize(
    ("rows", "clients", "complaint"),
    [
        (((0, 6),), 1, r"rows must be 0 to 5, got 6 for client 0; correct `rows`"),
        (((0, 1), (1,)), 2, r"a row must go to one client at most, got \[1\] more than once; .* `overlap: true`"),
        (((0,), (1,)), 3, r"data.clients: must be the number of lists, 2, got 3"),
    ],
)
def test_rows_that_do_not_fit_are_errors(rows: Any, clients: int, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        divided(Indices(rows=rows), clients)


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("a.json", b"[[0, 1", r"a.json' must be a whole JSON file, got 6 bytes, of which JSONDecodeError says"),
        ("a.json", b'[[0, "x"]]', r"rows of client 0 must be a list of whole numbers, got"),
        ("a.json", b"3", r"must hold a list of lists, got int"),
        ("a.npz", b"PK", r"a.npz' must be a whole .npz file"),
        ("a.txt", b"", r"`path` must be a .json or .npz file that exists, got"),
    ],
)
def test_files_that_do_not_fit_are_errors(tmp_path: Path, name: str, content: bytes, complaint: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises((ValueError, FileNotFoundError), match=complaint):
        divided(Indices(path=str(tmp_path / name)))
