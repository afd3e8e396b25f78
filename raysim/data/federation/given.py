"""Clients that are given: by the rows of the training samples that each holds, or as the values of a column."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import Field, GetJsonSchemaHandler, ValidationError, field_validator, model_validator
from pydantic_core import CoreSchema

from raysim.data.dataset import Split
from raysim.data.federation.partition import Partitioner
from raysim.data.sources.reading import load_npz, reading
from raysim.parts.errors import BadInput, BadValue, MissingFile, quoted
from raysim.parts.part import Part, spell_out
from results.location import location


class Indices(Partitioner):
    """Gives each client the training samples that a file, or the key `rows`, lists for it.

    Samples are numbered from 0 in the order in which the data set stores its training samples. A JSON file holds a list
    of lists. An .npz file holds an array `client` (n,) with the client of each sample, -1 for no client.
    """

    may_be_empty: ClassVar[bool] = True

    name: str = "indices"
    path: str | None = None
    """A .json or .npz file."""
    rows: Annotated[tuple[tuple[int, ...], ...] | None, Field(examples=[[[0, 1], [2, 3, 4]]])] = None
    """The rows of each client, instead of a file."""
    overlap: bool = False
    """Whether a sample may be held by several clients, or several times by one."""

    @field_validator("rows", mode="before")
    @classmethod
    def _plain(cls, rows: Any) -> Any:
        """Takes lists and arrays too, as Python has them."""
        if not isinstance(rows, list | tuple):
            return rows
        return tuple(tuple(np.asarray(part).tolist()) if np.ndim(part) == 1 else part for part in rows)

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.path is None) == (self.rows is None):
            raise ValueError("must have exactly one of `path` and `rows`; give the file, or the rows themselves")
        return self

    @property
    def may_overlap(self) -> bool:
        return self.overlap

    def reads(self) -> Iterable[str | Path]:
        return () if self.path is None else (self.path,)

    def split(self, split: Split, clients: int, generator: np.random.Generator) -> list[np.ndarray]:
        parts = self._listed(len(split))
        if len(parts) != clients:
            raise BadInput("data.clients", f"must be the number of lists, {len(parts)}, got {clients}")
        if wrong := self.wrong_with(parts, len(split), clients):
            where = "`rows`" if self.path is None else repr(self.path)
            raise BadValue(f"{wrong}; correct {where}, or set `overlap: true` if samples are shared")
        return parts

    def _listed(self, samples: int) -> list[np.ndarray]:
        """Returns the rows of each client, int64. samples: number of training samples."""
        if self.path is None:
            return [_integers(list(part), f"client {client}") for client, part in enumerate(self.rows or ())]
        if Path(self.path).suffix == ".npz":
            arrays = load_npz(self.path)
            if "client" not in arrays:
                raise BadValue(f"{self.path!r} must hold an array `client`, got {sorted(arrays)[:5]!r}; rename it")
            client = _integers(arrays["client"], "the array `client`")
            if len(client) != samples:
                text = f"the array `client` must have an entry for each of {samples} training samples, got"
                raise BadValue(f"{text} {len(client)}; write it for this data set")
            return [np.flatnonzero(client == number) for number in range(int(client.max(initial=-1)) + 1)]
        path = location(self.path).expanduser()
        if path.suffix != ".json" or not path.is_file():
            raise MissingFile(f"must be a .json or .npz file that exists, got {str(path)!r}; correct the path", "path")
        with reading(path, "a whole JSON file", "write it again"):
            found = json.loads(path.read_bytes())
        if not isinstance(found, list):
            raise BadValue(f"{self.path!r} must hold a list of lists, got {type(found).__name__}; change it")
        return [_integers(part, f"client {client}") for client, part in enumerate(found)]


def _integers(values: Any, where: str) -> np.ndarray:
    try:
        array = np.asarray(values)
    except ValueError:  # lists of different lengths within the list
        array = np.empty((0, 0))
    if array.ndim != 1 or (len(array) and array.dtype.kind not in "iu"):
        raise BadValue(f"rows of {where} must be a list of whole numbers, got {values!r:.80}")
    return array.astype(np.int64)


class OrColumn:
    """Says in the JSON Schema that a number may be the name of a column instead."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [handler(schema), {"type": "string"}]}


@dataclass(frozen=True)
class _Owned:
    """A source, and a column that says who owns its samples. It equals another of the same keys and files."""

    keys: str
    files: tuple[tuple[str, int, int], ...]
    by: str
    source: Part = field(compare=False)

    @classmethod
    def of(cls, source: Part, by: str) -> "_Owned":
        paths = [Path(path).expanduser() for path in source.reads()]
        stats = [(str(path.absolute()), path.stat()) for path in paths if path.exists()]
        files = tuple((path, stat.st_mtime_ns, stat.st_size) for path, stat in stats)
        return cls(repr(type(source)) + source.model_dump_json(serialize_as_any=True), files, by, source)


@lru_cache(maxsize=2)  # which keeps as many sources, with their arrays
def _number(owned: _Owned, samples: Callable[[Any], Split]) -> int:
    """Returns how many values the column has among the training samples. Raises BadValue if there is no such column."""
    return len(np.unique(samples(owned.source).column(owned.by)))


def counted(given: dict[str, Any], part: type[Part], samples: Callable[[Any], Split]) -> Any:
    """Makes of a column's name as `clients` the number of its values, and the partition by them.

    given: the keys of a source. part: its class. samples: loads the training samples of one.
    """
    by = given["clients"]
    divides = {"name": "natural", "by": by}
    if spell_out(given.get("partition", "natural")) not in ({"name": "natural"}, divides):
        text = f"must be left out where `clients` names a column, got `clients: {by}`"
        raise BadValue(f"{text}; leave it out, or give the number of clients", "partition")
    given = {**given, "clients": 1, "partition": divides}
    try:
        source = part.model_validate(given)
    except ValidationError:  # which says more without this one
        return given
    try:
        return {**given, "clients": _number(_Owned.of(source, by), samples)}
    except BadValue as error:
        if error.key != "partition.by":
            raise
        raise BadValue(f"{error.text}, or give the number of clients", "clients") from error
    except OSError as error:
        text = f"must be a number where the data cannot be read, got {quoted(by)}"
        raise BadValue(f"{text}, and {error}; correct the path", "clients") from error
