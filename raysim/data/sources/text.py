"""Texts in your files, as tokens: for language models and classifiers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from string import Formatter
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from raysim.data.dataset import Dataset, Split, tested
from raysim.data.meaning import InputMeaning, LabelMeaning, Meaning
from raysim.data.sources.columns import plain, require, require_plain, table_of
from raysim.data.sources.in_memory import InMemory, as_array, as_columns, contents
from raysim.data.sources.inputs import named_or_plain
from raysim.data.sources.labels import Said, labels_of
from raysim.data.sources.reading import matching
from raysim.data.sources.rows import Cells, Rows
from raysim.data.sources.source import Share, Source
from raysim.data.sources.text_samples import Sequences, arranged, read_rows
from raysim.data.sources.tokenizers import TOKENIZERS, Bytes, InFolder, Tokenizer, Tokens
from raysim.parts.errors import BadValue
from raysim.parts.part import Count, OneOf, Unit
from raysim.terms import Inputs
from results.location import is_local, local_copy, location

TOKENIZER = "tokenizer"  # the folder of a run's tokenizer, as transformers loads it


class Text(Source):
    """Texts in Parquet, JSON lines, CSV or text files, or in a folder that `datasets` has saved, as tokens.

    Inputs are `input_ids` and `attention_mask`, which models of transformers take, as wide as the longest text; or,
    with `pack`, tokens alone, which all models of text take. Where a place predicts nothing, its label is -100.
    """

    name: str = "text"
    path: Annotated[str, Field(examples=["reviews.jsonl"])]
    """A .parquet, .jsonl, .json, .csv, .tsv or .txt file, or a pattern such as texts/*.txt or data/train-*.parquet; or
    a folder of `save_to_disk`. A .txt file is one text in UTF-8, in the column `text`, whose name is in the column
    `file`. LEAF's .json files have text, user and label, as of Sent140, or subreddit and others, as of Reddit."""
    test_path: str | None = None
    """The file, or a pattern, of the test texts. null: the split test or validation of `save_to_disk` or, without any,
    a share of the texts."""
    delimiter: Annotated[str | None, Field(min_length=1, max_length=1)] = None
    """What is between the cells of CSV files, such as ";". null: a comma or, in .tsv files, a tab."""
    test_share: Share = 0.2
    """Share of the samples that is the test set, if there are no test texts. It is the same for every seed."""
    task: Literal["causal", "classify"] = "causal"
    """What is predicted. causal: each next token. classify: the label of a text."""
    text: str = "text"
    """Column of the texts; not used with `prompt`."""
    prompt: str | None = None
    """A template of the texts, with columns in braces, such as "Question: {question}\\nAnswer: ". null: `text`."""
    answer: str | None = None
    """Column of what follows the text or the prompt: only it is predicted; for causal only. null: all of the text is.
    """
    label: str | None = None
    """Column of the labels, which are texts, whole numbers or booleans; for classify only."""
    tokenizer: Annotated[Tokenizer, OneOf(TOKENIZERS)] = Bytes()
    """How texts become tokens."""
    length: Annotated[Count, Unit("tokens")] = 128
    """Most tokens of a sample. Longer texts are cut at their ends; prompts before an answer at their beginnings."""
    pack: bool = False
    """Whether texts are joined, those of each client, or of each value of the column that divides, by themselves, with
    a token for the end of each, and cut into samples of `length` tokens; what is left over is not used. For causal
    only."""

    @property
    def holds(self) -> tuple[Inputs, ...]:  # type: ignore[override]
        return ("text",) if self.pack else ("named",)

    @property
    def divisible_by(self) -> tuple[str, ...]:
        return (*(("label",) if self.task == "classify" else ()), *self.sides)

    def reads(self) -> Sequence[str | Path]:
        files: list[str | Path] = []
        for path in (self.path, self.test_path):
            if path is not None:
                folder = location(path).expanduser()
                files += [path] if is_local(folder) and folder.is_dir() else matching(path)
        return [*files, *self.tokenizer.reads()]

    def problems(self) -> list[str]:
        found = []
        for key, task in (("pack", "causal"), ("answer", "causal"), ("label", "classify")):
            if getattr(self, key) and self.task != task:
                found.append(f"`{key}` is for `task: {task}`, got {self.task}; leave it out, or correct `task`")
        if self.task == "classify" and self.label is None:
            found.append("`label` must name the column of the labels for `task: classify`, got null; add it")
        if self.prompt is not None:
            try:
                _fields(self.prompt)
            except ValueError as error:
                found.append(f"`prompt` must be a template with columns in braces, got {self.prompt!r}: {error}")
        return found

    def load(self) -> Dataset:
        """Loads the texts. Raises FileNotFoundError or ValueError, saying which row of which file, and what to do."""
        found = read_rows(self.path, self.test_path, Cells(self.delimiter, texts=self._of_texts))
        rows = [one.with_places(self.sides) for one in found if one is not None]
        beside = tuple(name for name in (self.label, *self.sides) if name is not None)
        texts = [self._texts(some, beside) for some in rows]
        tokens = self.tokenizer.fitted([question + answer for question, answer in texts[0]])
        wanted: Any = {"length": self.length, "pack": self.pack, "causal": self.task == "causal"}
        wanted["answers"] = self.answer is not None
        sides = [{name: plain(some.table, name) for name in self.sides} for some in rows]
        made = [
            arranged(tokens, pairs, columns, some.place, **wanted)
            for pairs, columns, some in zip(texts, sides, rows, strict=True)
        ]
        labels = None if self.label is None else [plain(some.table, self.label) for some in rows]
        return self._dataset(tokens, made, labels, rows[0].unused)

    def _dataset(
        self, tokens: Tokens, made: list[Sequences], labels: list[np.ndarray] | None, unused: tuple[str, ...]
    ) -> Dataset:
        width = max(one.width for one in made)
        y = [one.labels(width) for one in made]
        meant = LabelMeaning("classes", tokens.size, (), (width,))
        if labels is not None:
            both, meant = labels_of(labels, Said("classes"))
            y = np.split(both, [len(labels[0])])
        largest = max(int(ids.max()) for one in made for ids in (np.array(one.padding), *one.tokens))
        if largest >= tokens.size:
            text = f"must give tokens below the size of its vocabulary, {tokens.size}, got {largest}"
            raise BadValue(f"{text}; correct the size of its Tokens", "tokenizer")
        splits = [Split(one.inputs(width), targets, one.columns) for one, targets in zip(made, y, strict=False)]
        if len(splits) == 1 and len(splits[0]) < 2:
            must = "must hold two samples or more, of which one can test, got one"
            raise BadValue(f"{must}; set `pack`, which cuts a long text into samples, or `test_path`", "path")
        train, test = splits if len(splits) == 2 else tested(splits[0], self.test_share)
        words = f"texts of up to {width} tokens by {self.tokenizer.name}, of a vocabulary of {tokens.size}"
        inputs = replace(InputMeaning.of(train.x), words=words)
        files = {f"{TOKENIZER}/{name}": content for name, content in tokens.files.items()}
        meaning = Meaning(inputs, meant, unused=unused, files=files)
        notes = tuple(note for one in made for note in one.notes)
        return Dataset(train, test, meant.outputs, meaning=meaning, notes=notes)

    def inputs_of(self, given: Any, inputs: InputMeaning, folder: Path) -> Any:
        """Takes texts, in a list or in the columns of a data frame, where they are classified; or tokens, by name."""
        frame = as_columns(given)
        tokens = isinstance(frame, Mapping) and "input_ids" in frame
        if tokens or (not isinstance(frame, Mapping) and as_array(given).dtype.kind not in "OUST"):
            return named_or_plain(frame, inputs)
        if self.task != "classify" or not isinstance(inputs.shape, dict):
            raise BadValue("must be tokens where each token is predicted, got texts; encode them")
        columns = (
            {name: InMemory.of(frame[name]) for name in self._of_texts}
            if isinstance(frame, Mapping)
            else {self.text: InMemory.of(given)}
        )
        rows = table_of("inputs", contents(columns, "inputs"))
        with local_copy(folder / TOKENIZER) as copy:
            known = InFolder(path=str(copy)).fitted([])
        (width,) = inputs.shape["input_ids"]
        made = arranged(known, self._texts(rows), {}, rows.place, length=width)
        return made.inputs(width)

    def _texts(self, rows: Rows, beside: tuple[str, ...] = ()) -> list[tuple[str, str]]:
        """Returns the text of each row, and its answer, if it has one. beside: further columns that must be there."""
        names = _fields(self.prompt) if self.prompt is not None else [self.text]
        require(rows, tuple(dict.fromkeys((*self._of_texts, *beside))))
        for name in self._of_texts:
            require_plain(rows.table, name)
        values = {name: list(map(str, rows.table[name].to_pylist())) for name in self._of_texts}
        if self.prompt is None:
            questions: Sequence[str] = values[self.text]
        else:
            by_row = (dict(zip(names, row, strict=True)) for row in zip(*(values[name] for name in names), strict=True))
            count = rows.table.num_rows
            questions = [self.prompt.format_map(row) for row in by_row] if names else [self.prompt.format()] * count
        return list(zip(questions, values[self.answer] if self.answer else [""] * len(questions), strict=True))

    @property
    def _of_texts(self) -> tuple[str, ...]:
        """Columns of texts and answers."""
        names = [self.text] if self.prompt is None else _fields(self.prompt)
        return (*names, *(() if self.answer is None else (self.answer,)))


def _fields(template: str) -> list[str]:
    """Returns the columns that a template names. Raises ValueError if it is none."""
    names = [name for _, name, _, _ in Formatter().parse(template) if name is not None]
    if "" in names:
        raise ValueError("braces must hold a column's name, or be doubled")
    return list(dict.fromkeys(names))
