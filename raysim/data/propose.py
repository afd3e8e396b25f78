"""Guesses what files hold, says why, and writes the block of a scenario file to paste. Nothing else guesses."""

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from raysim.data.loaded import load
from raysim.data.sources import SOURCES
from raysim.data.sources.columns import is_numeric, plain, require_one_of_each
from raysim.data.sources.images import SUFFIXES as PICTURES
from raysim.data.sources.inputs import kind_of
from raysim.data.sources.labels import MOST, Said, one_axis, questions
from raysim.data.sources.reading import files_below, load_npz, matching, reading
from raysim.data.sources.rows import Cells, Rows, first_line, is_number, read_files
from raysim.data.sources.table import NAMELESS
from raysim.parts.errors import BadValue
from raysim.parts.part import as_tuples

if TYPE_CHECKING:
    import pyarrow as pa

_LABELS = r"label|labels|target|y|class|kind|outcome|response"
_OWNERS = r"(client|user|writer|owner|speaker|author|subject|patient|participant|person|device|site|hospital)(_?id)?"
_TABLES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")
_SUFFIXES = {
    "image_folder": PICTURES,
    "client_files": (".npz",),
    "table": _TABLES,
    "text": (".jsonl", ".json", ".txt", ".md"),
}
_KINDS = 50  # values of a text column that are kinds


class Guess(NamedTuple):
    """A key of `data`, its value, and why it is most likely meant."""

    key: str
    value: Any
    why: str = ""


def propose(path: Path) -> str:
    """Returns the block `data` for a file or folder, with the reason for each guess, and what it loads as comments.

    Raises ValueError if nothing is known of such files.
    """
    guesses = [*_guesses(path)]
    keys = {guess.key: guess.value for guess in guesses}
    lines = [f"  {one.key}: {json.dumps(one.value, ensure_ascii=False)}" for one in guesses]
    width = max(map(len, lines))
    block = [f"{line:{width}}  # {one.why}" if one.why else line for line, one in zip(lines, guesses, strict=True)]
    return "\n".join(["data:", *block, *(f"# {line}" for line in _loaded(keys)), ""])


def _loaded(keys: dict[str, Any]) -> list[str]:
    """Says what the keys of a source load, or what is wrong with them."""
    (kind,) = (kind for kind in SOURCES if kind.model_fields["name"].default == keys["name"])
    try:
        meaning = load(cast(Any, kind)(**as_tuples(keys))).meaning
        return [] if meaning is None else [*meaning.lines]
    except (ValueError, OSError) as error:
        return f"this does not load yet: {error}".splitlines()


def _guesses(path: Path) -> Iterator[Guess]:
    files = files_below(path) if path.is_dir() else [path]
    found = {name: [file for file in files if file.name.lower().endswith(of)] for name, of in _SUFFIXES.items()}
    name = max(found, key=lambda name: len(found[name]))
    if (path / "dataset_info.json").is_file() or (path / "dataset_dict.json").is_file():
        name, found["huggingface"] = "huggingface", files
    if not found[name]:
        must = "must be or hold pictures, .npz files, tables or texts"
        raise BadValue(f"{must}, got none in {str(path)!r}; name another")
    if name == "table":
        yield from _table(path / f"**/*{found[name][0].suffix}" if path.is_dir() else path)
    elif name == "client_files" and not path.is_dir():
        yield from _arrays(path)
    else:
        yield Guess("name", name, f"{len(found[name])} of {len(files)} files are of that kind")
        yield Guess("path", str(path))
        if name == "image_folder":
            yield Guess("size", 32, "pixels; pictures of other sizes are resized")
        if name == "client_files":
            yield Guess("clients", "file", f"{len({file.stem for file in found[name]})} names of files")
        elif {len(file.relative_to(path).parts) for file in files} == {3} and not (path / "train").is_dir():
            yield Guess("clients", "folder", "a folder seems to be a client, and a folder in it a class")
        else:
            yield from _iid("nothing says whose samples they are")


def _iid(why: str) -> tuple[Guess, Guess]:
    return Guess("clients", 10), Guess("partition", "iid", why)


def _table(path: Path) -> Iterator[Guess]:
    yield from (Guess("name", "table"), Guess("path", str(path)))
    cells, rows = Cells(), None
    if ".parquet" not in path.suffixes:
        cells = _cells(path)
        if cells.delimiter != ("\t" if ".tsv" in path.suffixes else ","):
            yield Guess("delimiter", cells.delimiter, "it cuts the first line into most names")
    rows = read_files("path", (str(path),), cells)
    require_one_of_each(rows, rows.table.column_names)
    if any(_decimal_commas(rows.table, name) for name in rows.table.column_names):
        cells = cells._replace(decimal=",")
        yield Guess("decimal", ",", "all cells of a column are numbers then, and not all could be thousands")
        rows = read_files("path", (str(path),), cells)
    names = rows.table.column_names
    named = [name for name in names if re.fullmatch(_LABELS, name.lower())]
    label = named[0] if named else names[-1]
    yield Guess("label", label, "its name" if named else "the last column; correct it if another is predicted")
    yield from _task(plain(rows.table, label))
    yield from _columns(rows, [name for name in names if name != label])


def _cells(path: Path) -> Cells:
    file = (matching(str(path)) or [str(path)])[0]
    with reading(file, "a CSV file"):
        first = first_line(Path(file))
    return Cells(max(",;\t|", key=lambda one: len(next(csv.reader([first], delimiter=one), []))))


def _decimal_commas(table: "pa.Table", name: str) -> bool:
    """Whether all cells of a column are numbers with decimal commas, which cannot all be those of thousands."""
    if is_numeric(table, name):
        return False
    texts = [str(text) for text in table[name].to_pylist() if text is not None]
    whole = [re.fullmatch(r"[-+]?\d{1,3}(,\d{3})*", text) for text in texts]
    return all(is_number(text, ",") for text in texts) and not all(whole)


def _columns(rows: Rows, names: list[str]) -> Iterator[Guess]:
    """Guesses which columns say whose rows they are, are no features, or hold kinds."""
    table, count = rows.table, rows.table.num_rows
    owner = next((name for name in names if re.fullmatch(_OWNERS, name.lower())), None)
    exclude, kinds = {}, []
    for name in names:
        values = plain(table, name)
        different = len(set(values.tolist()))
        if name == owner:
            continue
        if NAMELESS.fullmatch(name):
            exclude[name] = "has no name, as an index of pandas"
        elif values.dtype.kind == "U" and different > _KINDS:
            exclude[name] = f"holds {different} texts, such as {values[0].item()!r}"
        elif values.dtype.kind in "iuU" and different == count:
            exclude[name] = "has another value in each row"
        elif values.dtype.kind == "U":
            kinds.append(name)
    if len(exclude) == len({*names} - {owner}):  # a feature is left
        exclude = {
            name: why for name, why in exclude.items() if NAMELESS.fullmatch(name) or not is_numeric(table, name)
        }
    if exclude:
        yield Guess("exclude", [*exclude], "; ".join(f"{name!r} {why}" for name, why in exclude.items()))
    if kinds:
        yield Guess("categorical", kinds, "texts of few values")
    if owner is None:
        yield from _iid("no column seems to say whose rows they are")
    else:
        yield Guess(
            "clients", owner, f"its name; each of its {len(set(plain(table, owner).tolist()))} values is a client"
        )


def _task(y: np.ndarray) -> Iterator[Guess]:
    """Guesses what labels are that no rule tells."""
    y = one_axis(y)
    if not questions([y], Said()):
        return
    if y.ndim == 1:
        values = np.unique(y)
        few = len(values) <= min(MOST, max(2, len(y) // 10)) and bool((values == np.floor(values)).all())
        why = f"{len(values)} values in {len(y)} rows"
        yield Guess("task", "classes" if few else "regression", f"{why}, all whole" if few else why)
    elif y.dtype.kind == "f":
        yield Guess("task", "regression", f"{y.shape[1]} floats for each sample")
    elif y.ndim == 2 and y.max() <= 1:
        yield Guess("task", "multi_label", "0 and 1 for each sample")
    else:
        yield Guess("task", "classes", "whole numbers at several places")
        if questions([y], Said("classes")) and len(np.unique(y)) > 2:
            yield Guess("ignore", int(y.max()), "the largest label lies apart, as that of pixels without one does")


def _arrays(path: Path) -> Iterator[Guess]:
    yield from (Guess("name", "arrays"), Guess("path", str(path)))
    arrays = load_npz(str(path))
    x, y = (next((arrays[one] for one in (name, f"{name}_train") if one in arrays), None) for name in ("x", "y"))
    if x is None or y is None:
        raise BadValue(f"must hold x and y, or those of splits, got {sorted(arrays)!r}; name what they are", "path")
    if kind_of(x, None) is None:
        yield Guess("inputs", *_inputs(x))
    elif x.ndim == 2 and x.dtype.kind in "iu" and x.min() >= 0 and len(np.unique(x)) > MOST:
        yield Guess(
            "inputs", "tokens", f"whole numbers of {len(np.unique(x))} values; take it out if they are features"
        )
    yield from _task(y)
    named = [one for one in arrays if re.fullmatch(_OWNERS, one.removesuffix("_train").lower())]
    if named:
        owners = len(set(one_axis(arrays[named[0]]).tolist()))
        why = f"its name; each of its {owners} values is a client"
        yield Guess("clients", named[0].removesuffix("_train"), why)
    else:
        yield from _iid("no array seems to say whose samples they are")


def _inputs(x: np.ndarray) -> tuple[str, str]:
    """Returns what inputs of one, three or more axes most likely are, and why."""
    shape = x.shape[1:]
    if x.ndim == 3:
        square = shape[0] == shape[1] or x.dtype == np.uint8
        return ("images_first", "as high as wide, or bytes") if square else ("series", f"{shape[0]} steps come first")
    if x.ndim == 4:
        first = shape[0] <= shape[2]
        return ("images_first" if first else "images_last"), f"the {'first' if first else 'last'} axis is the shorter"
    return ("features", "one number for each sample") if x.ndim == 1 else ("volumes", "three axes besides channels")
