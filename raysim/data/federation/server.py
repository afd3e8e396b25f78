"""Samples that are no client's alone: those that the server itself has, and public ones that all clients have."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema

from raysim.data.dataset import Dataset, Split, rows_by_value
from raysim.data.federation.label_skew import draw_mix
from raysim.data.loaded import load
from raysim.data.meaning import by_name, shape_of, shape_text
from raysim.data.sources import IMAGES
from raysim.data.sources.images import Images, fit
from raysim.data.sources.source import DIVIDES
from raysim.parts.errors import BadValue, located
from raysim.parts.part import OneOf, Part, Positive, Samples, Unit


@dataclass(frozen=True)
class ServerSamples:
    """The server's samples, copied. There may be none, and their labels may mean something else than the clients'.

    num_classes, mean, std: as in `Dataset`, of these samples. in_domain: whether they are from the clients' data set.
    reference: samples of the clients' data set, which only diagnostics use; there may be none.
    """

    split: Split
    num_classes: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    in_domain: bool
    reference: Split


Rows = dict[str, np.ndarray]  # rows of the splits train and test, int64, ascending
NO_ROWS: Rows = {"train": np.empty(0, dtype=np.int64), "test": np.empty(0, dtype=np.int64)}


class ServerData(Part):
    """Where the server's samples come from. A subclass adds its `name`."""

    in_domain: ClassVar[bool] = True
    """Whether its samples have the clients' labels, which algorithms ask for whose server learns from labels."""

    name: str

    @abstractmethod
    def draw(self, dataset: Dataset, available: Rows, generator: np.random.Generator) -> tuple[ServerSamples, Rows]:
        """Returns the server's samples, and those of the available rows that they take from clients and evaluations.

        Samples fit the clients' data, and rows are among the available ones. Raises ValueError if too few rows would be
        left.
        """


class NoServerData(ServerData):
    """The server has no data."""

    name: str = "none"

    def draw(self, dataset: Dataset, available: Rows, generator: np.random.Generator) -> tuple[ServerSamples, Rows]:
        """Returns no samples and no rows."""
        nothing = dataset.test.take(NO_ROWS["test"])
        return ServerSamples(nothing, dataset.num_classes, dataset.mean, dataset.std, True, nothing), NO_ROWS


def _draw_rows(key: str, samples: int, split: str, available: Rows, generator: np.random.Generator) -> np.ndarray:
    """Draws rows of a split, ascending. Raises ValueError if none would be left."""
    rows = available[split]
    if samples >= len(rows):
        text = f"must be less than the {len(rows)} samples of the {split} set, from which they are taken, got {samples}"
        raise BadValue(f"{text}; {'lower it' if len(rows) > 1 else 'leave it out'}", key)
    return np.sort(generator.permutation(rows)[:samples])


class InDomain(ServerData):
    """The server has random samples of the clients' data set, which then neither train clients nor evaluate models."""

    name: str = "in_domain"
    samples: Annotated[Samples, Field(examples=[50])]
    """Number of the server's samples."""
    split: Literal["test", "train"] = "test"
    """Split that they are drawn from. Samples of `test` no longer evaluate models; those of `train` are taken from the
    clients that held them."""

    def draw(self, dataset: Dataset, available: Rows, generator: np.random.Generator) -> tuple[ServerSamples, Rows]:
        """Draws some of the available rows. Returns their samples, and the rows. Raises ValueError if none is left."""
        taken = _draw_rows("samples", self.samples, self.split, available, generator)
        split = dataset.test if self.split == "test" else dataset.train
        none = split.take(NO_ROWS["test"])
        samples = ServerSamples(split.take(taken), dataset.num_classes, dataset.mean, dataset.std, True, none)
        return samples, {**NO_ROWS, self.split: taken}


class _NamedOnly(OneOf):
    """One of several sources. The JSON Schema has its name only; its keys are described where it is the clients'."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        names, *_, own, _ = super().__get_pydantic_json_schema__(schema, handler)["anyOf"]
        block = {"type": "object", "properties": {"name": {"anyOf": [names, own]}}, "required": ["name"]}
        return {"anyOf": [names, own, block]}


class OutOfDomain(ServerData):
    """The server has labelled images of another data set."""

    in_domain: ClassVar[bool] = False

    name: str = "out_of_domain"
    data: Annotated[Images, _NamedOnly(IMAGES)]
    """An image data set, without the keys that say who holds what, such as `clients`."""
    samples: Samples | None = None
    """Number of its training samples that the server has, drawn at random. null: all."""
    fit: Literal["clients", "model"] = "clients"
    """Whose size and channels the images get. clients: those of the clients' images. model: they stay as `data` makes
    them, and the model brings them to its own input directly, as `model.image_size` says, which must be given."""
    reference: Annotated[int, Field(ge=0), Unit("samples")] = 0
    """Number of the clients' test samples that are set aside, to fill column `similarity` of the table of steps. It
    costs a pass through them and the server's samples in each step, which counts as the server's work. 0: none."""

    @model_validator(mode="after")
    def _holds_all(self) -> Self:
        usual = type(self.data).model_fields
        if more := [key for key in DIVIDES if getattr(self.data, key) != usual[key].default]:
            raise BadValue("must be left out, because the server alone holds these samples", f"data.{more[0]}")
        return self

    def draw(self, dataset: Dataset, available: Rows, generator: np.random.Generator) -> tuple[ServerSamples, Rows]:
        """Returns samples of the other data set, and rows for reference. Raises ValueError if there are too few."""
        with located("server_data.data"):
            other = load(self.data)
        number = len(other.train) if self.samples is None else self.samples
        if number > len(other.train):
            text = f"must be at most {len(other.train)}, the training samples of {self.data.name}, got {number}"
            raise BadValue(f"{text}; lower it", "samples")
        taken = other.train
        if number < len(taken):
            taken = taken.take(np.sort(generator.permutation(len(taken))[:number]))
        for whose, split in (("clients'", dataset.train), ("server's", taken)):
            if not split.pixels:
                kinds = ", ".join(str(one.dtype) for one in by_name(split.x).values())
                text = f"the {whose} inputs must be images of bytes (uint8), got {kinds} of shape"
                raise BadValue(f"{text} {shape_text(shape_of(split.x))}; take other data, or in_domain")
        height, width, channels = dataset.train.x.shape[1:]
        x = fit(taken.x, height, width, channels) if self.fit == "clients" else taken.x
        rows = _draw_rows("reference", self.reference, "test", available, generator)
        mean, std = self.data.statistics(x)
        samples = ServerSamples(Split(x, taken.y), other.num_classes, mean, std, False, dataset.test.take(rows))
        return samples, {**NO_ROWS, "test": rows}


SERVER_DATA: tuple[type[ServerData], ...] = (NoServerData, InDomain, OutOfDomain)


class Public(Part):
    """Random unlabelled samples that all clients or peers have, in the same order."""

    samples: Annotated[int, Field(ge=0), Unit("samples")] = 0
    """Number of public samples; 0: there are none."""
    split: Literal["train", "test"] = "train"
    """Split that they are drawn from. Clients may hold training samples too; test samples evaluate no model. A server
    with samples in domain may have some of them too."""
    from_all: bool = False
    """Whether they are drawn from all training samples of the data set, also from those that `data.train_samples`
    leaves out, as in the code of CMFD's authors. false: only from those that it leaves."""
    alpha: Positive | None = None
    """Skews their mix of labels: the shares of labels are drawn from Dir(alpha, ..., alpha). null: samples are drawn
    uniformly."""

    def draw(self, split: Split, generator: np.random.Generator) -> np.ndarray:
        """Draws rows of the split, ascending. Raises ValueError if it has too few, or none is left to evaluate on."""
        most = len(split) - (self.split == "test")
        if self.samples > most:
            text = f"must be at most {most} of {len(split)} {self.split} samples, got {self.samples}; lower it"
            raise BadValue(text, "samples")
        if self.alpha is None:
            return np.sort(generator.permutation(len(split))[: self.samples])
        groups = rows_by_value(split.column("label"))
        have = np.array([len(rows) for rows in groups])
        mix = generator.dirichlet(np.full(len(groups), self.alpha))
        wanted = draw_mix(mix, self.samples, have, generator)
        rows = [generator.permutation(rows)[:number] for rows, number in zip(groups, wanted, strict=True)]
        return np.sort(np.concatenate(rows))


NO_PUBLIC = Public()
