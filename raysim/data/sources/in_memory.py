"""Arrays in memory as values of a scenario: run.json keeps their shape, type and hash, and actors share one copy."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

import numpy as np
from pydantic import BaseModel, PlainValidator, WithJsonSchema

from raysim.parts.errors import BadValue

PartT = TypeVar("PartT", bound=BaseModel)
_KEYS = ("shape", "dtype", "hash")


@dataclass(frozen=True)
class InMemory:
    """An array, or what run.json keeps of one. Arrays with the same shape, type and hash are equal."""

    shape: tuple[int, ...]
    dtype: str
    hash: str  # of the values, in C order
    content: np.ndarray | None = field(default=None, compare=False, repr=False)  # None: described only

    @classmethod
    def of(cls, values: Any) -> InMemory:
        """Makes one of an array, of a tensor, or of a series or list that numpy makes an array of."""
        values = as_array(values)
        array = np.ascontiguousarray(values).reshape(np.shape(values))  # the former makes 0-d arrays 1-d
        if array.dtype == object:  # such as a pandas series of texts
            # NaN does not equal itself, and of pandas' NA that is not known.
            lacks = np.array([value is None or str(value == value) != "True" for value in array.flat])
            if missing := int(lacks.sum()):
                raise ValueError(f"an array must have a value everywhere, got {missing} missing ones; leave these out")
            numbers = all(isinstance(value, int | float | np.number | np.bool_) for value in array.flat)
            array = np.array(array.tolist()) if numbers else array.astype(np.str_)
        hashed = hashlib.blake2b(array.reshape(-1).view(np.uint8).data, digest_size=16)
        return cls(array.shape, str(array.dtype), hashed.hexdigest(), array)

    @property
    def described(self) -> dict[str, Any]:
        """What run.json keeps."""
        return {"shape": list(self.shape), "dtype": self.dtype, "hash": self.hash}


def contents(arrays: Mapping[str, InMemory], key: str) -> dict[str, np.ndarray]:
    """Returns the arrays themselves. Raises BadValue where only their descriptions are left. key: that has them."""
    found = {name: array.content for name, array in arrays.items() if array.content is not None}
    if len(found) < len(arrays):
        text = "must be given from Python again, because a run's folder keeps only their shapes and hashes, got a"
        raise BadValue(f"{text} description; give the arrays, or save them as a file and set `path`", key)
    return found


def as_columns(frame: Any) -> Any:
    """Returns a data frame, or a table of Arrow, as its columns by name; other values as they are.

    Raises ValueError for columns of one name.
    """
    names = getattr(frame, "column_names", getattr(frame, "columns", None))
    if names is None:
        return frame
    if dropped := [one for one in getattr(getattr(frame, "index", None), "names", ()) if one is not None]:
        text = f"a frame must have all that is used in its columns, got an index {dropped[0]!r}"
        raise ValueError(f"{text}; make it a column with reset_index(), or leave it out with reset_index(drop=True)")
    if len({str(name) for name in names}) < len(names):
        raise ValueError(f"a frame must have one column of each name, got {[*names]!r}; rename or drop the others")
    return {str(name): frame[name] for name in names}


def as_array(values: Any) -> np.ndarray:
    """Returns an array, or a tensor on any device, as numpy's: without its gradient, and floats that numpy lacks as
    float32."""
    torch = sys.modules.get("torch")
    if torch and isinstance(values, torch.Tensor):
        values = values.detach().cpu().resolve_conj().resolve_neg()
        if values.is_floating_point() and values.dtype not in (torch.float16, torch.float32, torch.float64):
            values = values.float()
    try:
        return np.asarray(values)
    except ValueError as error:  # of lists
        raise BadValue("an array must have as many values in each row as in others, got rows that differ") from error


def _validate(value: Any) -> InMemory:
    if isinstance(value, InMemory):
        return value
    if isinstance(value, dict) and set(value) == set(_KEYS):
        return InMemory(tuple(value["shape"]), str(value["dtype"]), str(value["hash"]))
    if hasattr(value, "__array__"):
        return InMemory.of(value)
    raise ValueError(f"must be an array, given from Python, got {type(value).__name__}; in a file, give `path` instead")


_SCHEMA = WithJsonSchema({"type": "object", "description": "An array in memory: shape, dtype and hash."})
AnArray = Annotated[Any, PlainValidator(_validate), _SCHEMA]


def without_arrays(part: PartT) -> PartT:
    """Returns a part, such as a scenario, without the contents of its arrays in memory."""
    changed = {key: described for key, value in part if (described := _described(value)) is not value}
    return part.model_copy(update=changed) if changed else part


def _described(value: Any) -> Any:
    if isinstance(value, InMemory):
        return value if value.content is None else InMemory(value.shape, value.dtype, value.hash)
    if isinstance(value, BaseModel):
        return without_arrays(value)
    if isinstance(value, dict) and any(isinstance(inner, InMemory) for inner in value.values()):
        return {key: _described(inner) for key, inner in value.items()}
    return value
