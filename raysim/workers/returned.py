"""The rules for an algorithm's methods: they change nothing in place, and return what their docstrings say.

Every call of a method on a worker goes through `calling`. What it returns goes through one of the functions below. All
of them raise ContractError, whose text begins with the class and the method.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, Self, TypeVar

from pydantic import ValidationError
from torch import Tensor, equal, float32

from raysim.algorithms import Central, Peer
from raysim.local.logged import is_filled_by_tasks
from raysim.local.model import Model
from raysim.models.layout import Layout
from raysim.parts.errors import BadValue
from raysim.parts.own import place_of
from raysim.parts.rng import seed_globals
from raysim.terms import Record, SearchResult, ServerStep
from raysim.workers.replies import Searched

_THOROUGH = ContextVar("_THOROUGH", default=False)  # whether values are compared, too
E = TypeVar("E", bound=BaseException)


class ContractError(BadValue):
    """A method of an algorithm broke a rule: it changed what it was given, or returned something wrong."""


@contextmanager
def thorough() -> Iterator[None]:
    """Within the block, the values of what methods are given are compared, too, which takes longer than a run should.

    Changes through `.data` or `.numpy()` are hidden from torch, which counts all others.
    """
    before = _THOROUGH.set(True)
    try:
        yield
    finally:
        _THOROUGH.reset(before)


@contextmanager
def calling(
    algorithm: Central | Peer, method: str, seed: int, *ids: int, who: str = "", **given: Record
) -> Iterator[str]:
    """Surrounds a call of an algorithm's method, and yields the name by which messages call the method.

    Before the call, it seeds the global generators, by the method and the ids. After it, the records in `given` must be
    as they were. who: what is added to any error, such as "client 3, its dispatch 0, model version 2".
    """
    where, place = f"{type(algorithm).__name__}.{method}", place_of(getattr(type(algorithm), method))
    before = {name: {key: _Seen.of(entry) for key, entry in record.items()} for name, record in given.items()}
    seed_globals(seed, method, *ids)
    try:
        yield where
        for name, record in given.items():
            _require_unchanged(where, name, record, before[name])
    except ValidationError as error:
        if (first := error.errors()[0])["type"] != "frozen_instance":
            raise
        must = f"must set no attribute of the algorithm, but sets {first['loc'][0]!r}; keep it in a state"
        raise _noted(ContractError(f"{where}: {must}{place}"), who) from None
    except ContractError as error:
        raise _noted(ContractError(f"{error.text}{place}"), who) from None
    except BaseException as error:
        if isinstance(error, KeyError):
            has = (f"{name} has {', '.join(map(repr, one)) or 'nothing'}" for name, one in given.items())
            error.add_note("; ".join(text for text in has if not text.startswith("the ")))
        _noted(error, who)
        raise


class _Seen(NamedTuple):
    """A tensor before a method was given it."""

    entry: Tensor
    version: int  # torch's count of the changes in place
    values: Tensor | None  # a copy, if the values are compared, too

    @classmethod
    def of(cls, entry: Tensor) -> Self:
        return cls(entry, entry._version, entry.detach().clone() if _THOROUGH.get() else None)

    @property
    def changed(self) -> bool:
        if self.entry._version != self.version:
            return True
        return self.values is not None and not equal(self.entry.nan_to_num(), self.values.nan_to_num())


def _noted(error: E, who: str) -> E:
    if who:
        error.add_note(who)
    return error


def _require_unchanged(where: str, name: str, record: Record, before: Mapping[str, _Seen]) -> None:
    """Raises ContractError if a record that a method was given has changed. before: its tensors as they were."""
    for key in {**before, **record}:
        seen = before.get(key)
        if seen is None or record.get(key) is not seen.entry:
            hint = "leave the dict as it is, and make a new one"
        elif seen.changed:
            hint = "copy it first, with clone()" + "; task.received.w is the same tensor" * (name == "message")
        else:
            continue
        text = f"must not change in place what it is given, but changed {key!r} of {name}"
        raise ContractError(f"{where}: {text}; {hint}")


def record(where: str, value: Any, what: str) -> Record:
    """Returns a record as it is. Raises ContractError for anything else. what: what the method was to return."""
    if not isinstance(value, dict):
        raise ContractError(f"{where}: must return {what}, a dict of tensors, got {_kind(value)}")
    for key, entry in value.items():
        if not isinstance(key, str):
            raise ContractError(f"{where}: the names of entries of {what} must be text, got {key!r}")
        if not isinstance(entry, Tensor):
            hint = "; make it one, with torch.tensor(...)" if isinstance(entry, int | float) else ""
            raise ContractError(f"{where}: {key!r} of {what} must be a tensor, got {_kind(entry)}{hint}")
    return value


def pair(where: str, value: Any, first: str, second: str) -> tuple[Record, Record]:
    """Returns a pair of records as it is. Raises ContractError for anything else."""
    if not isinstance(value, tuple) or len(value) != 2:
        got = f"{len(value)} values" if isinstance(value, tuple) else _kind(value)
        raise ContractError(f"{where}: must return two records, {first} and {second}, got {got}")
    return record(where, value[0], first), record(where, value[1], second)


def alike(where: str, value: Record, model: Mapping[str, Tensor], what: str, maker: str, fills: bool = False) -> None:
    """Raises ContractError unless a record has the keys, shapes and types of another.

    maker: the method that made the other. fills: whether an entry that was empty so far may take any shape.
    """
    if value.keys() != model.keys():
        hint = f"; let `{maker}` return all that is kept" if value.keys() - model.keys() else "; return it as it came"
        must = f"{what} must have the entries that `{maker}` returned, {sorted(model)!r}"
        raise ContractError(f"{where}: {must}, got {sorted(value)!r}{hint}")
    for key, entry in value.items():
        kept = model[key]
        if entry.dtype != kept.dtype or (entry.shape != kept.shape and not (fills and kept.numel() == 0)):
            must = f"{key!r} of {what} must stay {_kind(kept)}, as `{maker}` made it"
            stacked = kept.numel() and entry.shape[1:] == kept.shape
            hint = "; if `weigh` returns None, updates come as a stack: sum over its first axis" if stacked else ""
            raise ContractError(f"{where}: {must}, got {_kind(entry)}{hint}")


def same_updates(where: str, updates: Sequence[Record], summed: bool) -> None:
    """Raises ContractError unless updates of one step, or of chunks of it, have the same entries and shapes.

    summed: whether they are to be summed. Otherwise they are stacked, and their leading axes may differ.
    """
    first = {key: value.shape[0 if summed else 1 :] for key, value in updates[0].items()} if updates else {}
    for update in updates:
        if update.keys() != first.keys():
            must = "every client's update must have the entries of those of other clients"
            raise ContractError(f"{where}: {must}, {sorted(first)!r}, got {sorted(update)!r}")
        for key, value in update.items():
            if (shape := value.shape[0 if summed else 1 :]) != first[key]:
                must = f"{key!r} must have the shape that other clients send, {tuple(first[key])}"
                raise ContractError(f"{where}: {must}, got {tuple(shape)}")


def step(where: str, value: Any, before: Record) -> ServerStep:
    """Returns what a server step returned, as a ServerStep. before: the state that the step was given."""
    made = value if isinstance(value, ServerStep) else ServerStep(value)
    state = record(where, made.state, "the next state")
    if "w" not in state:
        must = "the next state must hold 'w'"
        raise ContractError(f"{where}: {must}, got {sorted(state)!r}; return state['w'] if the model is to stay")
    if unknown := sorted(state.keys() - before.keys()):
        must = f"must return only entries that `init` returned, {sorted(before)!r}"
        raise ContractError(f"{where}: {must}, got also {unknown!r}; let `init` return their first values")
    alike(where, state, {key: before[key] for key in state}, "the next state", "init", fills=True)
    return made


def vector(where: str, value: Record, layout: Layout, what: str, *, shared: bool) -> None:
    """Raises ContractError unless a record's "w", if it has one, can be a model.

    shared: whether it may be the shared part alone.
    """
    if (w := value.get("w")) is None:
        return
    sizes = sorted({layout.cut, layout.size}) if shared else [layout.size]
    if w.shape not in [(size,) for size in sizes] or w.dtype != float32:
        must = f"'w' of {what} must be float32 of shape {' or '.join(f'({size},)' for size in sizes)}"
        raise ContractError(f"{where}: {must}, got {_kind(w)}")


def model(where: str, value: Any, layout: Layout) -> Model:
    """Returns a model as it is. Raises ContractError for anything else, or a model of another size."""
    if not isinstance(value, Model):
        raise ContractError(f"{where}: must return a model, got {_kind(value)}")
    vector(where, {"w": value.w}, layout, "the model", shared=False)
    return value


def predictor(where: str, value: Any, layout: Layout) -> Model | Callable[[Tensor], Tensor]:
    """Returns a model or a function as it is. Raises ContractError for anything else, or a model of another size."""
    if isinstance(value, Model):
        return model(where, value, layout)
    if not callable(value):
        raise ContractError(f"{where}: must return a model or a function from inputs to outputs, got {_kind(value)}")
    function: Callable[[Tensor], Tensor] = value
    return function


def _kind(value: Any) -> str:
    """Returns what a value is, in a few words."""
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} of shape {tuple(value.shape)}"
    return repr(value) if value is None or isinstance(value, int | float | str) else type(value).__name__


def searched(search: SearchResult) -> Searched:
    """Returns what a search found as columns. Raises ValueError if one of the algorithm's own has another length."""
    columns = {name: found.tolist() for name, found in search._asdict().items() if name != "own"}
    own = {}
    for name, found in search.own.items():
        is_filled_by_tasks("coefficients", name)  # raises for all that it has
        if found.shape != search.anchor.shape:
            text = f"must have one number for each of {len(search.anchor)} anchors, got shape {tuple(found.shape)}"
            raise BadValue(f"SearchResult: the custom column {name!r} {text}")
        own[name] = found.double().tolist()
    return Searched(columns, own)
