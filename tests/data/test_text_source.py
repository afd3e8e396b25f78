"""Texts become tokens, masks and labels as worked out by hand, and what does not fit is refused with its place."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import transformers
from command_line import command
from same_bits import same_on_ray
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from torch import Tensor, nn

import raysim
from raysim.data.dataset import Dataset
from raysim.data.loaded import load as load_checked
from raysim.data.sources.text import Text
from raysim.data.sources.tokenizers import END, UNKNOWN, BytePairs, Bytes, Characters, InFolder, Tokens
from raysim.runs.inspection import inspect

Load = Callable[..., Dataset]
ROWS = [
    {"text": "ab", "who": "ann", "kind": "x"},
    {"text": "abc", "who": "bob", "kind": "y"},
    {"text": "b", "who": "ann", "kind": "x"},
    {"text": "cab", "who": "bob", "kind": "y"},
]
A, B, C = 4, 5, 6  # of the characters a, b and c


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Loads rows from a file of JSON lines, which is also the test set."""

    def loading(rows: Any = ROWS, **keys: Any) -> Dataset:
        path = tmp_path / "texts.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return load_checked(Text(path=str(path), test_path=str(path), **{"tokenizer": Characters(), **keys}))

    return loading


def test_a_causal_sample_has_the_next_token_as_label_and_minus_100_where_it_ends(load: Load) -> None:
    split = load(clients="who").train
    assert split.x["input_ids"].tolist() == [[A, B, 0], [A, B, C], [B, 0, 0], [C, A, B]]
    assert split.x["attention_mask"].tolist() == [[1, 1, 0], [1, 1, 1], [1, 0, 0], [1, 1, 1]]
    assert split.y.tolist() == [[B, END, -100], [B, C, END], [END, -100, -100], [A, B, END]]
    assert split.columns["who"].tolist() == ["ann", "bob", "ann", "bob"]
    assert split.x["input_ids"].dtype == np.int32


def test_only_the_answer_to_a_prompt_is_predicted(load: Load) -> None:
    rows = [{"q": "ab", "a": "c"}, {"q": "", "a": "ca"}]
    split = load(rows, prompt="b{q}", answer="a").train
    assert split.x["input_ids"].tolist() == [[B, A, B, C], [B, C, A, 0]]
    assert split.y.tolist() == [[-100, -100, C, END], [C, A, END, -100]]
    cut = load(rows, prompt="b{q}", answer="a", length=3)  # a prompt loses its beginning
    assert cut.train.x["input_ids"].tolist() == [[A, B, C], [B, C, A]]
    assert cut.train.y.tolist() == [[-100, C, END], [C, A, END]]
    assert cut.notes[0] == "data.length: 1 of 2 texts have more than 3 tokens, and are cut"


def test_packed_texts_of_a_client_fill_samples_one_after_the_other(load: Load) -> None:
    dataset = load(clients="who", pack=True, length=3)
    # ann: ab. b.   bob: abc. cab.
    assert dataset.train.x.tolist() == [[A, B, END], [A, B, C], [END, C, A]]
    assert dataset.train.y.tolist() == [[B, END, B], [B, C, END], [C, A, B]]
    assert dataset.train.columns["who"].tolist() == ["ann", "bob", "bob"]


def test_labels_of_texts_are_numbered_and_long_texts_are_cut(load: Load) -> None:
    dataset = load(task="classify", label="kind", length=2)
    assert dataset.num_classes == 2 and dataset.train.y.tolist() == [0, 1, 0, 1]
    assert dataset.train.x["input_ids"].tolist() == [[A, B], [A, B], [B, 0], [C, A]]


def decoded(tokens: Tokens, ids: Any) -> str:
    """The text of tokens, by the files that a run keeps."""
    made = Tokenizer.from_str(tokens.files["tokenizer.json"].decode())
    return str(made.decode([one for one in np.asarray(ids).tolist() if one > UNKNOWN]))


def test_tokenizers_give_texts_back(tmp_path: Path) -> None:
    texts = ["the cat sat on the mat", "a cat — and naïve"] * 5
    trained = BytePairs(vocabulary=300)
    for tokenizer in (Bytes(), Characters(), trained):
        tokens = tokenizer.fitted(texts)
        ids = tokens.encode(texts)
        assert [decoded(tokens, one) for one in ids] == texts
        assert max(one.max() for one in ids) < tokens.size and min(one.min() for one in ids) > UNKNOWN
    assert Characters().fitted(["ab"]).encode(["axb"])[0].tolist() == [A, UNKNOWN, B]
    again = trained._learned(texts)
    assert again == trained._learned(texts) and len(trained.fitted(texts).encode(["the cat"])[0]) < 7


def test_a_tokenizer_of_a_folder_puts_its_own_tokens_around_texts(tmp_path: Path, load: Load) -> None:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b", "b"]
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("\n".join(words))
    transformers.BertTokenizerFast(vocab={word: at for at, word in enumerate(words)}).save_pretrained(tmp_path / "bert")
    rows = [{"text": "ab", "kind": "x"}, {"text": "b b b", "kind": "y"}]
    dataset = load(rows, task="classify", label="kind", length=4, tokenizer=InFolder(path=str(tmp_path / "bert")))
    assert dataset.train.x["input_ids"].tolist() == [[2, 5, 6, 3], [2, 7, 7, 3]]


def test_files_of_all_kinds_give_the_same_texts(tmp_path: Path) -> None:
    frame = pd.DataFrame(ROWS)
    frame.to_parquet(tmp_path / "one.parquet")
    frame.to_csv(tmp_path / "one.csv", index=False)
    frame.to_json(tmp_path / "one.jsonl", orient="records", lines=True)
    frame[:2].to_parquet(tmp_path / "train-00000-of-00002.parquet")
    frame[2:].to_parquet(tmp_path / "train-00001-of-00002.parquet")
    frame.to_parquet(tmp_path / "test-00000-of-00001.parquet")
    frame.to_json(tmp_path / "one.json", orient="records")
    names = ("one.parquet", "one.csv", "one.jsonl", "one.json")
    loaded = [Text(path=str(tmp_path / name)).load() for name in names]
    assert len({one.train.x["input_ids"].tobytes() for one in loaded}) == 1
    hub = Text(path=str(tmp_path / "train-*.parquet"), test_path=str(tmp_path / "test-*.parquet")).load()
    assert (len(hub.train), len(hub.test)) == (4, 4)
    (tmp_path / "notes").mkdir()
    for name in ("ann", "bob"):
        (tmp_path / "notes" / f"{name}.txt").write_text(f"{name} says this and that")
    notes = Text(path=str(tmp_path / "notes" / "*.txt"), clients="file", pack=True, length=5).load()
    assert set(notes.train.columns["file"]) == {"ann", "bob"}
    with pytest.raises(ValueError, match=r"a file, a pattern or a folder of `save_to_disk`, got .*notes/\*.txt'"):
        Text(path=str(tmp_path / "notes")).load()


def test_a_text_is_in_utf_8_without_its_mark_and_no_file_of_a_system(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt", "README.md", ".ipynb_checkpoints/a-checkpoint.txt", "__MACOSX/a.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes("\N{ZERO WIDTH NO-BREAK SPACE}two words\r\n".encode())
    dataset = Text(path=str(tmp_path / "**" / "*.txt"), test_share=0.5).load()
    assert (len(dataset.train), len(dataset.test)) == (1, 1)
    assert decoded(Bytes().fitted([]), dataset.train.x["input_ids"][0]) == "two words\n"
    for encoding in ("latin-1", "utf-16"):
        (tmp_path / "a.txt").write_text("so schön", encoding=encoding)
        with pytest.raises(ValueError, match=r"a.txt' must be a text in UTF-8, got .*; write it again, in UTF-8"):
            Text(path=str(tmp_path / "a.txt")).load()


@pytest.mark.parametrize("cell", [["two", "words"], {"role": "user"}, b"bytes"])
def test_lists_records_and_bytes_are_no_texts(tmp_path: Path, cell: Any) -> None:
    """Their words in Python would be tokens."""
    pd.DataFrame({"text": [cell] * 4}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=r"column 'text' must hold numbers, booleans or texts.*, got .*; convert it"):
        Text(path=str(tmp_path / "t.parquet")).load()


@pytest.mark.parametrize("cell", ["true", "00.50", "1:30", "2026-11-01"])
def test_cells_of_texts_are_as_they_stand(tmp_path: Path, cell: str) -> None:
    """Without that, an answer would be that of Python: True, 0.5, 01:30:00."""
    (tmp_path / "t.csv").write_text("text,answer\n" + f"what?,{cell}\n" * 4)
    ids = Text(path=str(tmp_path / "t.csv"), answer="answer").load().train.x["input_ids"][0]
    assert decoded(Bytes().fitted([]), ids) == f"what?{cell}"


def test_cells_of_csv_may_have_many_lines(tmp_path: Path) -> None:
    lines = 'said "this",\nand \U0001f642\n' * 40
    frame = pd.DataFrame({"text": [f"{at} {lines}" for at in range(1500)]})  # more than Arrow reads in one block
    frame.to_csv(tmp_path / "cells.csv", index=False)
    ids = Text(path=str(tmp_path / "cells.csv"), length=2000, train_samples=1).load().train.x["input_ids"][0]
    assert decoded(Bytes().fitted([]), ids) in frame.text.tolist()


def test_files_of_leaf_have_texts_labels_and_users(tmp_path: Path) -> None:
    for split in ("train", "test"):
        (tmp_path / split).mkdir()
        rows = {
            "ann": {"x": [["1", "mon", "q", "ann", f"good {split}", "[]"]], "y": [1]},
            "bob": {"x": ["bad"], "y": [0]},
        }
        (tmp_path / split / "all.json").write_text(json.dumps({"users": [*rows], "user_data": rows}))

    def loaded(folder: Path, **keys: Any) -> Dataset:
        return Text(path=str(folder / "train/*.json"), test_path=str(folder / "test/*.json"), **keys).load()

    dataset = loaded(tmp_path, task="classify", label="label", clients="user")
    tokens = Bytes().fitted([])
    assert [decoded(tokens, one) for one in dataset.test.x["input_ids"]] == ["good test", "bad"]
    assert dataset.train.y.tolist() == [1, 0] and dataset.train.columns["user"].tolist() == ["ann", "bob"]
    sequences = [["<BOS>", "oh", "my"], ["word", "<EOS>", "<PAD>"]]
    told = {"subreddit": "cats", "created_utc": 3, "score": 1, "target_tokens": [["oh"]], "count_tokens": [[1.0]]}
    users = {"1": {"x": [sequences], "y": [told]}, "2": {"x": [], "y": []}}
    for split in ("train", "test"):
        (tmp_path / "reddit" / split).mkdir(parents=True)
        file = tmp_path / "reddit" / split / f"reddit_0_{split}.json"
        file.write_text(json.dumps({"users": [*users], "num_samples": [1, 0], "user_data": users}))
    reddit = loaded(tmp_path / "reddit", clients="subreddit")
    assert reddit.train.columns["subreddit"].tolist() == ["cats"] and len(reddit.test) == 1
    assert decoded(tokens, reddit.train.x["input_ids"][0]) == "oh my word"


@pytest.mark.parametrize(
    ("rows", "keys", "text"),
    [
        (ROWS, {"text": "txt"}, r"texts.jsonl' must have a column 'txt', got \['text', 'who', 'kind'\]"),
        ([*ROWS, {"text": ""}], {}, r"row 4 of '.*texts.jsonl' must have a text of a token or more, got none"),
        ([{"q": "ab", "a": "cab"}], {"text": "q", "answer": "a", "length": 3}, "row 0 of .* an answer of fewer tokens"),
        (
            [{"text": "ab"}, {"text": None}],
            {},
            "missing values: 1 in 'text', the first in row 1 of '.*texts.jsonl'; fil",
        ),
        ([{"text": "a"}], {"tokenizer": InFolder(path="{folder}")}, "row 0 of .*texts.jsonl' must have two tokens, so"),
        (ROWS, {"pack": True, "length": 50}, "must leave a sample of 50 tokens, got none with `pack`"),
        (ROWS, {"tokenizer": InFolder(path="nowhere")}, "must be a local folder with a tokenizer of transformers"),
    ],
)
def test_rows_that_give_no_sample_are_refused(load: Load, tmp_path: Path, rows: Any, keys: Any, text: str) -> None:
    if keys.get("tokenizer") == InFolder(path="{folder}"):  # one without a token for the end of a text
        words = transformers.PreTrainedTokenizerFast(tokenizer_object=Tokenizer(WordLevel({"a": 0}, unk_token="a")))
        words.save_pretrained(tmp_path / "words")
        keys = {"tokenizer": InFolder(path=str(tmp_path / "words"))}
    with pytest.raises(ValueError, match=text):
        load(rows, **keys)


def test_keys_that_do_not_go_together_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a long text")
    with pytest.raises(ValueError, match="`path` must hold two samples or more, of which one can test, got one; set"):
        Text(path=str(tmp_path / "a.txt")).load()
    part = Text(path=str(tmp_path / "a.txt"), task="classify", pack=True, prompt="{")
    assert [problem.partition(" ")[0] for problem in part.problems()] == ["`pack`", "`label`", "`prompt`"]
    assert "must name the column of the labels" in Text(path="a.txt", task="classify").problems()[0]


def scenario(path: Path) -> Any:
    rows = [{"text": ("to be or not " * 3)[: 9 + at % 20], "who": f"w{at % 4}"} for at in range(40)]
    (path / "who.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = {"name": "text", "path": str(path / "who.jsonl"), "tokenizer": "characters", "clients": "who", "length": 16}
    model = {"name": "causal_lm", "config": {"model_type": "gpt2", "n_layer": 1, "n_embd": 8, "n_head": 2}}
    raw = {"name": "text", "data": data, "model": model, "algorithm": {"name": "fedbuff", "buffer": 2}}
    raw |= {"local": {"lr": 0.1, "batch_size": 4}, "world": {"dispatch": {"per_round": 2}}}
    return raw | {"run": {"rounds": 4, "evaluate_every": 2}}


class Words(nn.Module):
    """Logits of each token, of which nobody took the mean unless `pooled`."""

    def __init__(self, pooled: bool) -> None:
        super().__init__()
        self.words, self.pooled = nn.Embedding(260, 4), pooled

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        logits: Tensor = self.words(input_ids)
        mask = attention_mask[..., None]
        return (logits * mask).sum(1) / mask.sum(1) if self.pooled else logits


def test_a_padded_text_is_not_classified_by_its_last_place(tmp_path: Path) -> None:
    """That may be padding, so every text would be given the same label."""
    raw = scenario(tmp_path)
    raw["data"] |= {"task": "classify", "label": "who", "tokenizer": "bytes"}
    (problem,) = inspect(raysim.parse_scenario(raw | {"model": Words(pooled=False)})).problems
    assert "the last place may be padding, so pool what it returns for each place" in problem.text
    assert inspect(raysim.parse_scenario(raw | {"model": Words(pooled=True)})).problems == []


def test_tokens_that_a_classifier_does_not_embed_are_told_before_training(tmp_path: Path) -> None:
    raw = scenario(tmp_path)
    raw["data"] |= {"task": "classify", "label": "who", "tokenizer": "bytes"}
    config = {"model_type": "distilbert", "n_layers": 1, "dim": 8, "n_heads": 2, "hidden_dim": 8, "vocab_size": 99}
    found = inspect(raysim.parse_scenario(raw | {"model": {"name": "sequence_classifier", "config": config}}))
    (problem,) = found.problems
    assert problem.path == "model" and "which go up to 120, got a vocabulary of 99" in problem.text


@pytest.mark.slow
@pytest.mark.ray
def test_texts_give_the_same_bits_on_ray_and_after_a_stop(ray_session: Any, tmp_path: Path) -> None:
    raw = scenario(tmp_path)
    whole = same_on_ray(raw, tmp_path)
    half = raysim.run(
        raysim.parse_scenario(raw | {"run": {"rounds": 2, "evaluate_every": 2}}), inline=True, out=tmp_path
    )
    assert command("resume", str(half.folder), "--inline", "--set", "run.rounds=4").exit_code == 0
    assert raysim.Result(half.folder).digest == whole.digest


# --- what does not fit ------------------------------------------------------------------------------------------------


GPT = {"model_type": "gpt2", "n_layer": 1, "n_embd": 8, "n_head": 2, "n_positions": 16}


def unfit(data: dict[str, Any], model: dict[str, Any]) -> Any:
    """Texts of which the answer in row 3 is long, with changes of the data and the model."""
    rows = [{"text": "how many", "answer": "twelve" * (1 + 9 * (at == 3))} for at in range(12)]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    raw: Any = {"name": "unfit", "algorithm": "fedavg", "run": {"rounds": 1}, "world": {"dispatch": {"per_round": 2}}}
    raw["data"] = {"name": "text", "path": "rows.jsonl", "length": 16, "clients": 2, "partition": "iid", **data}
    return raw | {"model": {"name": "causal_lm", "config": GPT} | model, "local": {"batch_size": 4}}


def without_weights() -> Any:
    transformers.AutoConfig.for_model(**GPT).save_pretrained("bare")
    return unfit({}, {"path": "bare", "config": None})


TOKENS = {"task": "classes", "num_classes": 9}


def mask_of_zeros() -> Any:
    ids = np.ones((6, 8), np.int32)
    arrays = {"input_ids": ids, "attention_mask": ids * (np.arange(6) != 4)[:, None], "y": ids}
    np.savez("masks.npz", **{f"{name}_{split}": one for name, one in arrays.items() for split in ("train", "test")})
    raw = unfit({}, {"config": GPT | {"vocab_size": 9}})
    keys = {"name": "arrays", "path": "masks.npz", "inputs": ["input_ids", "attention_mask"], **TOKENS}
    return raw | {"data": {**keys, "clients": 2, "partition": "iid"}}


@pytest.mark.parametrize(
    ("make", "path", "says"),
    [
        (without_weights, "model.path", ["bare', which has no *.safetensors", "save the model there with save_pretr"]),
        (
            lambda: unfit({}, {"config": GPT | {"vocab_size": 99}}),
            "model.config",
            ["must embed each of the 260 tokens of the data, got a vocabulary of 99", "take the model's own tokenizer"],
        ),
        (
            lambda: unfit({"answer": "answer", "length": 70}, {}),
            "model.config",
            ["must have a position for each of ", " tokens of a sequence, got 16", "lower data.length"],
        ),
        (lambda: unfit({"text": "txt"}, {}), "data", ["'rows.jsonl' must have a column 'txt', got ['text', 'ans"]),
        (
            mask_of_zeros,
            "data",
            ["of 'masks.npz': train: x.attention_mask must show a token", "in row 4; leave it out"],
        ),
        (
            lambda: unfit({"answer": "answer"}, {}),
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
