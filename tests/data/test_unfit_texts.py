"""What does not fit is told before any training, by a check and by a run, with the file, the row and the cure."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transformers

import raysim
from raysim.runs.inspection import inspect

GPT = {"model_type": "gpt2", "n_layer": 1, "n_embd": 8, "n_head": 2, "n_positions": 16}


def scenario(data: dict[str, Any], model: dict[str, Any]) -> Any:
    """Texts of which the answer in row 3 is long, with changes of the data and the model."""
    rows = [{"text": "how many", "answer": "twelve" * (1 + 9 * (at == 3))} for at in range(12)]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    raw: Any = {"name": "unfit", "algorithm": "fedavg", "run": {"rounds": 1}, "world": {"dispatch": {"per_round": 2}}}
    raw["data"] = {"name": "text", "path": "rows.jsonl", "length": 16, "clients": 2, "partition": "iid", **data}
    return raw | {"model": {"name": "causal_lm", "config": GPT} | model, "local": {"batch_size": 4}}


def without_weights() -> Any:
    transformers.AutoConfig.for_model(**GPT).save_pretrained("bare")
    return scenario({}, {"path": "bare", "config": None})


TOKENS = {"task": "classes", "num_classes": 9}


def mask_of_zeros() -> Any:
    ids = np.ones((6, 8), np.int32)
    arrays = {"input_ids": ids, "attention_mask": ids * (np.arange(6) != 4)[:, None], "y": ids}
    np.savez("masks.npz", **{f"{name}_{split}": one for name, one in arrays.items() for split in ("train", "test")})
    raw = scenario({}, {"config": GPT | {"vocab_size": 9}})
    keys = {"name": "arrays", "path": "masks.npz", "inputs": ["input_ids", "attention_mask"], **TOKENS}
    return raw | {"data": {**keys, "clients": 2, "partition": "iid"}}


@pytest.mark.parametrize(
    ("make", "path", "says"),
    [
        (without_weights, "model.path", ["bare', which has no *.safetensors", "save the model there with save_pretr"]),
        (
            lambda: scenario({}, {"config": GPT | {"vocab_size": 99}}),
            "model.config",
            ["must embed each of the 260 tokens of the data, got a vocabulary of 99", "take the model's own tokenizer"],
        ),
        (
            lambda: scenario({"answer": "answer", "length": 70}, {}),
            "model.config",
            ["must have a position for each of ", " tokens of a sequence, got 16", "lower data.length"],
        ),
        (lambda: scenario({"text": "txt"}, {}), "data", ["'rows.jsonl' must have a column 'txt', got ['text', 'ans"]),
        (
            mask_of_zeros,
            "data",
            ["of 'masks.npz': train: x.attention_mask must show a token", "in row 4; leave it out"],
        ),
        (
            lambda: scenario({"answer": "answer"}, {}),
            "data.length",
            ["row 3 of 'rows.jsonl' must have an answer of fewer tokens than data.length, 16, got 60", "drop the row"],
        ),
    ],
    ids=["no weights", "few tokens", "few positions", "no column", "mask of zeros", "long answer"],
)
def test_it_is_told_with_its_place_and_the_cure(
    make: Any, path: str, says: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    raw = make()
    (problem,) = inspect(raysim.parse_scenario(raw)).problems
    assert problem.path == path and all(text in problem.text for text in says), problem
    with pytest.raises(raysim.RunFailed) as told:
        raysim.run(raw, inline=True, out=tmp_path / "runs")
    assert all(text in str(told.value) for text in says) and not told.value.traceback
