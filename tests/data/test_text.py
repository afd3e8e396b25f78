"""Text: characters as tokens, plays by role, windows, and what is predicted of them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import Raw, Simulate, digits, override
from refusals import told
from torch.nn import functional as F

from raysim.data import Dataset, federate
from raysim.data.federation.server import NoServerData
from raysim.data.sources.shakespeare import (
    BEGIN,
    CHARACTERS,
    END,
    UNKNOWN,
    VOCABULARY,
    Shakespeare,
    encode,
    roles,
    windows,
)
from raysim.local.outputs import cross_entropy, predicted

PLAY = """\
ROMEO:
But, soft! what light
through yonder window breaks?

JULIET:

ROMEO:
She speaks.

Mercutio, friend of ROMEO:
Nay.
"""


def said(role: str) -> str:
    """What a role says, back from ids to text, with < before a speech and > after it."""
    names = {BEGIN: "<", END: ">", UNKNOWN: "?"} | dict(enumerate(CHARACTERS, start=3))
    return "".join(names[i] for i in roles(PLAY)[role].tolist())


def part(path: Path, **settings: Any) -> Shakespeare:
    return Shakespeare.model_validate({"path": str(path), "clients": 1, **settings})


def load(path: Path, **settings: Any) -> Dataset:
    return part(path, **settings).load()


# Tokens


def test_the_vocabulary_has_an_id_for_every_character_and_one_for_all_others() -> None:
    assert len(set(CHARACTERS)) == len(CHARACTERS) == 86
    ids = encode(CHARACTERS)
    assert ids.tolist() == list(range(3, 89))
    assert encode("é漢\x00~\ud800").tolist() == [UNKNOWN] * 5
    assert (UNKNOWN, VOCABULARY, encode("").shape) == (89, 90, (0,))


def test_what_a_role_says_is_in_order_of_appearance() -> None:
    assert list(roles(PLAY)) == ["ROMEO", "JULIET", "Mercutio, friend of ROMEO"]
    assert said("ROMEO") == "<But, soft! what light\nthrough yonder window breaks?><She speaks.>"
    assert said("JULIET") == "<>"
    assert said("Mercutio, friend of ROMEO") == "<Nay.>"
    assert roles("no speaker: here\n") == {}


def test_windows_are_whole_and_a_stride_apart() -> None:
    ids = np.arange(10, dtype=np.int16)
    assert windows(ids, 4, 4).tolist() == [[0, 1, 2, 3, 4], [4, 5, 6, 7, 8]]
    assert windows(ids, 3, 5).tolist() == [[0, 1, 2, 3], [5, 6, 7, 8]]
    assert windows(ids, 9, 1).tolist() == [list(range(10))]
    assert windows(ids, 10, 1).shape == (0, 11)


# Plays


@pytest.fixture
def play(tmp_path: Path) -> Path:
    """A says the letters a to z, twice in two speeches; B says three letters; C the digits, ten times."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    speeches = [("A", letters), ("B", "abc"), ("C", "0123456789" * 10), ("A", letters)]
    path = tmp_path / "play.txt"
    path.write_text("\n\n".join(f"{speaker}:\n{speech}" for speaker, speech in speeches))
    return path


def test_the_first_part_of_a_roles_text_trains_and_the_last_part_tests(play: Path) -> None:
    """A's ids are 56: 42 train, in four windows of 10 (the last two ids are left over), and 14 test, in one."""
    dataset = load(play, length=10, test_share=0.25)
    ids = np.concatenate([[BEGIN], encode("abcdefghijklmnopqrstuvwxyz"), [END]] * 2)
    of_a = dataset.train.columns["user"] == 0
    np.testing.assert_array_equal(dataset.train.x[of_a], ids[:40].reshape(4, 10))
    np.testing.assert_array_equal(dataset.train.y[of_a], ids[1:41].reshape(4, 10))
    np.testing.assert_array_equal(dataset.test.x[dataset.test.columns["user"] == 0], ids[42:52].reshape(1, 10))
    assert (dataset.train.x.dtype, dataset.train.y.dtype) == (np.int16, np.int64)
    assert (dataset.num_classes, dataset.loss, dataset.mean) == (90, "cross_entropy", ())


def test_roles_with_too_little_text_are_left_out(play: Path) -> None:
    assert set(load(play, length=10).train.columns["user"]) == {0, 1}  # A and C
    dataset = load(play, length=10, min_samples=5)
    assert set(dataset.train.columns["user"]) == set(dataset.test.columns["user"]) == {0}
    assert len(dataset.train) == 8  # of C
    with pytest.raises(ValueError, match=r"a role with 9 training windows and a test window of 10 characters, got non"):
        load(play, length=10, min_samples=9)


def test_only_the_next_character_may_be_predicted(play: Path) -> None:
    every, following = (load(play, length=10, targets=targets).train for targets in ("every", "next"))
    np.testing.assert_array_equal(following.x, every.x)
    np.testing.assert_array_equal(following.y, every.y[:, -1])


def test_each_client_is_a_role_and_tests_on_its_own_text(play: Path) -> None:
    federation = federate(part(play, length=10, clients=2), NoServerData(), seed=0)
    digit = encode("0123456789")
    assert federation.samples.tolist() == [4, 8]
    split, rows = federation.local_test(1)
    assert np.isin(split.x[rows][:, :8], digit).all()
    assert not np.isin(federation.train.x[federation.train_rows(0)], digit).any()
    table = federation.partition_table()
    assert table["samples"][table["split"] == "train"].tolist() == [4, 8]
    assert set(table["label"]) == {0}


def write_leaf(folder: Path, split: str, users: dict[str, list[tuple[str, str]]]) -> None:
    (folder / split).mkdir(parents=True)
    data = {user: {"x": [x for x, _ in pairs], "y": [y for _, y in pairs]} for user, pairs in users.items()}
    content = {"users": list(users), "num_samples": [len(pairs) for pairs in users.values()], "user_data": data}
    (folder / split / "all_data.json").write_text(json.dumps(content))


@pytest.mark.parametrize("targets", ["every", "next"])
def test_leafs_windows_are_read_as_they_are(tmp_path: Path, targets: str) -> None:
    write_leaf(tmp_path, "train", {"b": [("abc", "d"), ("bcd", "~")], "a": [("xyz", "!")], "c": [("ccc", "c")]})
    write_leaf(tmp_path, "test", {"a": [("yz!", " ")], "b": [("cd~", "e")]})
    dataset = load(tmp_path, targets=targets, length=3)
    whole = [encode(text) for text in ("xyz!", "abcd", "bcd~")]
    assert dataset.train.x.tolist() == [ids[:3].tolist() for ids in whole]
    expected = [ids[1:].tolist() if targets == "every" else ids[3] for ids in whole]
    assert dataset.train.y.tolist() == expected
    assert dataset.train.columns["user"].tolist() == [0, 1, 1]
    assert dataset.test.columns["user"].tolist() == [0, 1]


def test_what_is_no_play_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="must be a text file, or a folder of LEAF's, but is not there; put it"):
        load(tmp_path / "nowhere.txt")
    (tmp_path / "prose.txt").write_text("It was a dark and stormy night.\n")
    with pytest.raises(ValueError, match="got none; lower `length` or `min_samples`"):
        load(tmp_path / "prose.txt")
    with pytest.raises(FileNotFoundError, match=r"must have JSON files in `train` and `test`, but has none; make them"):
        load(tmp_path)
    write_leaf(tmp_path, "train", {"a": [("abcd", "e")]})
    with pytest.raises(ValueError, match="x must be texts of `length` 80, got one of 4: 'abcd'"):
        load(tmp_path)
    write_leaf(tmp_path, "test", {"b": [("bcde", "f")]})
    with pytest.raises(ValueError, match=r"must have a role in `train` that is in `test` too, .*preprocess.sh -t"):
        load(tmp_path, length=4)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"data__partition": {"name": "shards"}}, "data: partition shards: needs 'label', and shakespeare has 'user'"),
        ({"model": "mlp"}, "model.name: mlp takes images or features or series or volumes, and shakespeare holds text"),
        ({"data": digits()["data"]}, "model.name: transformer takes text, and digits holds images"),
    ],
)
def test_text_goes_with_models_of_text_and_partitions_without_labels(changes: Raw, expected: str) -> None:
    raw = digits(model="transformer", data={"name": "shakespeare", "path": "play.txt", "clients": 30})
    assert expected in told(override(raw, **changes))


# Predictions


def test_cross_entropy_is_the_mean_over_all_that_is_predicted() -> None:
    torch.manual_seed(0)
    logits, every = torch.randn(4, 3, 5), torch.randint(5, (4, 3))
    each = torch.stack([F.cross_entropy(logits[i, j], every[i, j]) for i in range(4) for j in range(3)])
    assert cross_entropy(logits, every).item() == pytest.approx(each.mean().item())
    assert cross_entropy(logits, every, reduction="sum").item() == pytest.approx(each.sum().item())
    assert cross_entropy(logits, every[:, 2]).item() == pytest.approx(each[2::3].mean().item())
    assert cross_entropy(logits[:, 0], every[:, 0]).item() == pytest.approx(each[::3].mean().item())
    assert torch.equal(predicted(logits, every), logits)
    assert torch.equal(predicted(logits, every[:, 2]), logits[:, 2])


@pytest.mark.parametrize("algorithm", ["fedavg", "knn_per"])
@pytest.mark.parametrize(("targets", "each"), [("every", 10), ("next", 1)])
def test_metrics_are_by_character(simulate: Simulate, play: Path, algorithm: str, targets: str, each: int) -> None:
    raw: Raw = {
        "name": "play",
        "data": {"name": "shakespeare", "path": str(play), "length": 10, "clients": 2, "targets": targets},
        "model": {"name": "transformer", "layers": 2, "width": 16, "heads": 2, "dropout": 0.0, "personal": []},
        "algorithm": algorithm,
        "local": {"lr": 0.5, "batch_size": 2, "epochs": 3},
        "world": {"dispatch": {"per_round": 2}},
        "run": {"rounds": 12, "evaluate_every": 12, "evaluate_clients": "all", "evaluate_on": ["test", "train"]},
    }
    result = simulate(raw)
    evaluations = result.pandas("evaluations").query("step == 12")
    samples = evaluations.query("metric == 'loss'").groupby(["subject", "split"]).samples.sum()
    assert samples.to_dict() == {
        ("client", "test"): 2 * each,
        ("global", "test"): 2 * each,
        ("global", "train"): 12 * each,
    }
    accuracy = evaluations.query("metric == 'accuracy'")
    assert accuracy.value.between(0, 1).all()
    assert set(result.pandas("updates").samples) == {4, 8}
    if targets == "every":
        loss = evaluations.query("metric == 'loss' and split == 'train'").value.item()
        assert loss < 0.8 * np.log(VOCABULARY)
