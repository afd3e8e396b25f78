"""Who holds which of a source's samples: the keys that a scenario has beside those of its source of data."""

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import numpy as np
from pydantic import (
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    TypeAdapter,
    ValidationError,
    create_model,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError

from raysim.data.dataset import Split
from raysim.data.federation.indices import Indices
from raysim.data.federation.label_skew import Classes, Dirichlet, DirichletClients, Shards
from raysim.data.federation.partition import Iid, Natural, Partitioner
from raysim.data.federation.skew import FEATURE_SKEWS, FeatureSkew, LabelNoise, NoisyClients
from raysim.data.loaded import load
from raysim.data.sources.source import Source
from raysim.data.sources.synthetic import Quadratic
from raysim.parts.errors import BadValue, quoted
from raysim.parts.part import Fraction, OneOf, Part, Unit, spell_out

PARTITIONS: tuple[type[Partitioner], ...] = (Iid, Dirichlet, DirichletClients, Shards, Classes, Natural, Indices)
Partition = Annotated[Partitioner, OneOf(PARTITIONS)]
LocalTest = Annotated[Fraction, Unit("fraction")] | Literal["test"]


class _OrColumn:
    """Says in the JSON Schema that a number may be the name of a column instead."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [handler(schema), {"type": "string"}]}


@dataclass(frozen=True)
class _Owned:
    """A source, and a column that says who owns its samples. It equals another of the same keys and files."""

    keys: str
    files: tuple[tuple[str, int, int], ...]
    by: str
    source: Source = field(compare=False)

    @classmethod
    def of(cls, source: Source, by: str) -> "_Owned":
        paths = [Path(path).expanduser() for path in source.reads()]
        stats = [(str(path.absolute()), path.stat()) for path in paths if path.exists()]
        files = tuple((path, stat.st_mtime_ns, stat.st_size) for path, stat in stats)
        return cls(repr(type(source)) + source.model_dump_json(serialize_as_any=True), files, by, source)


@lru_cache(maxsize=2)  # which keeps as many sources, with their arrays
def _number(owned: _Owned) -> int:
    """Returns how many values the column has among the training samples. Raises BadValue if there is no such column."""
    return len(np.unique(load(owned.source).train.column(owned.by)))


class Federated(Source):
    """A source whose samples are divided among clients. `federated` makes the class for a source."""

    clients: Annotated[int, Field(ge=1, le=10_000_000, examples=[10]), Unit("clients"), _OrColumn()]
    """Number of clients; or who owns what: the name of a column, each value of which is then a client, such as `user`,
    or `file` or `folder` where each client has one. The data are read at once, to count them."""
    partition: Partition
    """How the training samples are divided among the clients. Where samples are those of users, each user is a client
    by default."""
    local_test: LocalTest = 0.0
    """What a client tests its own model on: a share of its samples, which it then does not train on (0: nothing), or
    `test`: its part of the test set.

    The test set is divided as the training samples are: by label, or by the column of the partition. Test samples that
    no client gets then evaluate no model. Where samples are those of users, the default is `test`."""
    validation: Annotated[float, Field(ge=0, lt=1), Unit("fraction")] = 0.0
    """Share of each client's training samples, and of a server's samples in domain, that are set aside: they neither
    train nor test. Together they are the split `validation`, on which models are evaluated too, and which searches
    tune on. Clients that are unseen, and public samples, set none aside. 0: there is no such split."""
    unseen: Annotated[Fraction, Unit("fraction")] = 0.0
    """Share of the clients that hold samples but never take part in training; they are the last ones."""
    label_noise: Annotated[Fraction, Unit("fraction")] | tuple[Fraction, ...] | NoisyClients = 0.0
    """Share of each client's training samples that get a noisy label: one share for all clients, a list with a share
    for each client, or a block that draws the shares. Labels of test and validation samples stay right. Where a sample
    is held several times, or has no label of its own, it must be 0."""
    noisy_labels: Literal["wrong", "random"] = "wrong"
    """What a noisy label is. wrong: one of the other labels. random: one of all labels, so it may be the right one. All
    of them are equally likely."""
    skew: Annotated[FeatureSkew, OneOf(FEATURE_SKEWS)] | None = None
    """How the inputs of clients differ: each client's training samples and its own test samples are changed in a way of
    its own whenever they are fetched. The global test set and the server's and public samples are not, and neither are
    training and validation samples where a model is evaluated on those of all clients together (`run.evaluate_on`).
    `run.evaluate_clients` evaluates on each client's samples as the client has them. null: not at all."""

    @model_validator(mode="before")
    @classmethod
    def _counted(cls, given: Any) -> Any:
        """Makes of a column's name the number of its values, and the partition by them."""
        by = given.get("clients") if isinstance(given, dict) else None
        if not isinstance(by, str):
            return given
        divides = {"name": "natural", "by": by}
        if spell_out(given.get("partition", "natural")) not in ({"name": "natural"}, divides):
            text = f"must be left out where `clients` names a column, got `clients: {by}`"
            raise BadValue(f"{text}; leave it out, or give the number of clients", "partition")
        given = {**given, "clients": 1, "partition": divides}
        try:
            source = cls.model_validate(given)
        except ValidationError:  # which says more without this one
            return given
        try:
            return {**given, "clients": _number(_Owned.of(source, by))}
        except BadValue as error:
            if error.key != "partition.by":
                raise
            raise BadValue(f"{error.text}, or give the number of clients", "clients") from error
        except OSError as error:
            text = f"must be a number where the data cannot be read, got {quoted(by)}"
            raise BadValue(f"{text}, and {error}; correct the path", "clients") from error

    @property
    def sides(self) -> tuple[str, ...]:
        by = self.partition.column
        return () if by in (None, "label") else (by,)

    @property
    def participants(self) -> int:
        """Number of clients that may take part in training; they are the first ones."""
        return self.clients - int(self.unseen * self.clients + 1e-9)

    def divide(self, train: Split, generator: np.random.Generator) -> list[np.ndarray]:
        """Returns the training rows of each client, int64. Raises ValueError if the partition divides wrongly."""
        parts = self.partition.split(train, self.clients, generator)
        if wrong := self.partition.wrong_with(parts, len(train), self.clients):
            raise BadValue(f"{self.partition.name}.split: {wrong}")
        return parts

    def noise_shares(self, seed: int) -> np.ndarray:
        """Returns the share of noisy labels of each client, float64 (clients,)."""
        noise: LabelNoise = self.label_noise
        if isinstance(noise, NoisyClients):
            return noise.shares(self.clients, seed)
        return np.full(self.clients, noise) if isinstance(noise, float | int) else np.array(noise)

    def division_problems(self) -> list[str]:
        """Lists what is wrong with these keys, as far as can be told without data."""
        by, there = self.partition.column, self.divisible_by
        if there is None or by in (None, *there):
            found = self.partition.problems(self.clients, self.classes)
        else:
            has = " and ".join(map(repr, there)) or "neither labels nor columns"
            found = [f"partition {self.partition.name}: needs {by!r}, and {self.name} has {has}; take iid"]
        if self.local_test == "test" and not self.has_test_set:
            found.append(
                f"`local_test` must be a share, because {self.name} has no test set, got 'test'; take 0.2, say"
            )
        if self.participants == 0:
            found.append(f"`unseen` must leave a client of {self.clients} that trains, got {self.unseen:g}; lower it")
        if self.unseen and self.participants == self.clients:
            text = f"`unseen` must be 0, or make one client of {self.clients} unseen, got {self.unseen:g}"
            found.append(f"{text}, which makes none; raise it to {math.ceil(1e8 / self.clients) / 1e8:.8g}")
        if isinstance(self.label_noise, tuple) and len(self.label_noise) != self.clients:
            got = len(self.label_noise)
            found.append(f"`label_noise` must have a share for each of {self.clients} clients, got {got}")
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the source's class instead of this one, which no module holds."""
        return _restored, (type(self).__bases__[0], dict(self))


def _restored(source: type[Source], values: dict[str, Any]) -> Federated:
    return federated(source).model_construct(**values)


@cache
def federated(source: type[Source]) -> type[Federated]:
    """Returns the class of the block `data` for a source: with the keys of the source, and those of `Federated`."""
    if issubclass(source, Federated | Quadratic):  # quadratics come with their clients
        return source  # type: ignore[return-value]
    kinds: dict[str, Any] = {"partition": Partition, "local_test": LocalTest}
    usual: Any = {key: (kinds[key], TypeAdapter(kinds[key]).validate_python(v)) for key, v in source.usual.items()}
    made = create_model(source.__name__, __base__=(source, Federated), __module__=source.__module__, **usual)
    for name in ("__doc__", "__qualname__", "__firstlineno__"):  # documentation and errors show those of the source
        if name in vars(source):
            setattr(made, name, vars(source)[name])
    return cast("type[Federated]", made)


def _class_for(source: type[Source], keys: Collection[str]) -> type[Source]:
    divides = not set(keys).isdisjoint(Federated.model_fields.keys() - Source.model_fields.keys())
    return federated(source) if divides else source


Source.class_for = staticmethod(_class_for)


def divided(source: Source, **keys: Any) -> Federated:
    """Returns a source with who holds its samples, for scenarios in Python: divided(Digits(), clients=10, ...)."""
    return federated(type(source))(**dict(source), **keys)


class OneOfSources(OneOf):
    """One of several sources of data, each with the keys of `Federated` beside its own."""

    def __init__(self, sources: Iterable[type[Source]]) -> None:
        super().__init__(map(federated, sources))

    def find(self, name: str) -> type[Part] | None:
        found: Any = super().find(name)
        return federated(found) if found else None

    def _validate(self, value: Any, among_parts: Callable[[Any], Any]) -> Any:
        if isinstance(value, Source) and federated(type(value)) is not type(value):
            text = f"must say who holds the samples, got a {type(value).__name__} alone; take raysim.data.divided"
            raise PydanticCustomError("wrong_class", "{text}", {"text": text})
        return super()._validate(value, among_parts)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = super().__get_pydantic_core_schema__(source, handler)
        self.bases = (Source,)  # what users write is a source
        return schema
