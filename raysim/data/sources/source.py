"""The base of all sources of data: what loads samples, says what they are, and who holds them."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, get_args

import numpy as np
from pydantic import Field, GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema

from raysim.data.dataset import Dataset, Split
from raysim.data.federation.given import Indices, OrColumn, counted
from raysim.data.federation.label_skew import Classes, Dirichlet, DirichletClients, Shards
from raysim.data.federation.partition import Iid, Natural, Partitioner
from raysim.data.federation.skew import FEATURE_SKEWS, FeatureSkew, LabelNoise, NoisyClients
from raysim.data.meaning import InputMeaning
from raysim.data.sources.inputs import named_or_plain
from raysim.parts.errors import BadValue
from raysim.parts.part import Fraction, OneOf, Part, Samples, Unit
from raysim.terms import Inputs

Share = Annotated[float, Field(gt=0, lt=1), Unit("fraction")]  # more than nothing and less than all
PARTITIONS: tuple[type[Partitioner], ...] = (Iid, Dirichlet, DirichletClients, Shards, Classes, Natural, Indices)
Partition = Annotated[Partitioner, OneOf(PARTITIONS)]
LocalTest = Annotated[Fraction, Unit("fraction")] | Literal["test"]
DIVIDES = ("clients", "partition", "local_test", "validation", "unseen", "label_noise", "noisy_labels", "skew")
"""The keys that say who holds which samples."""


class Source(Part):
    """Where samples come from, and who holds them. A subclass adds its `name`, its own keys, and `load`."""

    name: str
    train_samples: Samples | None = None
    """Number of training samples to use: the first ones in stored order, equally many of each label where each sample
    has one. null: all."""
    test_samples: Samples | None = None
    """Number of test samples to use, chosen as training samples are. null: all."""
    clients: Annotated[int, Field(ge=0, le=10_000_000, examples=[10]), Unit("clients"), OrColumn()] = 0
    """Number of clients; or who owns what: the name of a column, each value of which is then a client, such as `user`,
    or `file` or `folder` where each client has one. The data are read at once, to count them."""
    partition: Partition = Iid()
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

    holds: ClassVar[tuple[Inputs, ...]] = get_args(Inputs)
    """What inputs are or, where that is known only once they are loaded, what they may be."""
    has_test_set: ClassVar[bool] = True
    """Whether there are test samples beside those that train."""
    has_clients: ClassVar[bool] = False
    """Whether the source's own keys say how many clients there are."""

    @model_validator(mode="before")
    @classmethod
    def _counted(cls, given: Any) -> Any:
        by_column = isinstance(given, dict) and isinstance(given.get("clients"), str)
        return counted(given, cls, _training_samples) if by_column else given

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Says which keys must be given, as `require_division` does."""
        schema = super().__get_pydantic_json_schema__(core, handler)
        if needed := cls.needed():
            found = handler.resolve_ref_schema(schema)
            found["required"] = [*found.get("required", ()), *needed]
            for key in needed:
                del found["properties"][key]["default"]
            found["properties"]["clients"]["anyOf"][0]["minimum"] = 1
        return schema

    @classmethod
    def needed(cls) -> tuple[str, ...]:
        """Returns the keys without which it is not known who holds which samples."""
        if cls.has_clients:
            return ()
        divided = cls.model_fields["partition"].default is not Source.model_fields["partition"].default
        return ("clients",) if divided else ("clients", "partition")

    @property
    def classes(self) -> int | None:
        """Number of labels; 0 if there are none, and None if that is known only once the data are loaded."""
        return None

    @property
    def divisible_by(self) -> tuple[str, ...] | None:
        """What samples can be divided by: `label`, if each has one, and columns. None if that is not known yet."""
        return None

    @property
    def sides(self) -> tuple[str, ...]:
        """Columns, in addition to the label, by which samples are divided. They are no inputs."""
        by = self.partition.column
        return () if by in (None, "label") else (by,)

    def reads(self) -> Sequence[str | Path]:
        """Returns the files and folders that are read: `path`, if the source has that key."""
        return () if (path := getattr(self, "path", None)) is None else (path,)

    @abstractmethod
    def load(self) -> Dataset:
        """Loads the data set. Raises FileNotFoundError, saying what to do, if it is not on this machine."""

    def inputs_of(self, given: Any, inputs: InputMeaning, folder: Path) -> Any:
        """Returns new inputs, in the form that a user has them in, as `Split` holds inputs before they are scaled.

        inputs: what those are that the model was trained on. folder: the run's, with the files that it keeps. Raises
        ValueError if they are something else.
        """
        return named_or_plain(given, inputs)

    def problems(self) -> list[str]:
        """Lists what is wrong with the source's own keys, as far as can be told without data."""
        return []

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
            text = f"`local_test` must be a share, because {self.name} has no test set, got 'test'"
            found.append(f"{text}; take 0.2, for example")
        if self.participants == 0:
            found.append(f"`unseen` must leave a client of {self.clients} that trains, got {self.unseen:g}; lower it")
        if self.unseen and self.participants == self.clients:
            text = f"`unseen` must be 0, or make one client of {self.clients} unseen, got {self.unseen:g}"
            found.append(f"{text}, which makes none; raise it to {math.ceil(1e8 / self.clients) / 1e8:.8g}")
        if isinstance(self.label_noise, tuple) and len(self.label_noise) != self.clients:
            got = len(self.label_noise)
            found.append(f"`label_noise` must have a share for each of {self.clients} clients, got {got}")
        return found


def _training_samples(source: Source) -> Split:
    from raysim.data.loaded import load  # which takes sources

    return load(source).train


def divided(source: Source, **keys: Any) -> Source:
    """Returns a source with other keys, such as who holds its samples: divided(data, clients=10, partition="iid")."""
    return type(source)(**{**dict(source), **keys})


def require_division(source: Source) -> Source:
    """Returns a source whose samples clients hold. Raises BadValue unless it says how many clients there are, and how
    samples are divided among them: no partition is so usual that it could be meant without a word."""
    given = source.model_fields_set
    if not source.clients and "clients" in given:
        raise BadValue("must be greater than or equal to 1, got 0", "clients")
    if missing := [key for key in source.needed() if key not in given]:
        example = {"clients": "10", "partition": "iid"}[missing[0]]
        raise BadValue(f"must be given, got nothing; for example {example}", missing[0])
    return source
