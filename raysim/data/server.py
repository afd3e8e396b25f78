"""What data the server itself has."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema, core_schema

from raysim.data.dataset import Dataset, Split
from raysim.data.images import Images
from raysim.data.partition import Iid
from raysim.data.pixels import fit
from raysim.data.sets import IMAGES
from raysim.part import Count, OneOf, Part, spell_out


@dataclass(frozen=True)
class ServerSamples:
    """The server's samples, copied; there may be none, and their labels may be others than the clients'.

    num_classes, mean, std: as in `Dataset`, of these samples. in_domain: whether their labels are the clients'.
    reference: samples like the clients', which only diagnostics see; there may be none.
    """

    split: Split
    num_classes: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    in_domain: bool
    reference: Split


Rows = dict[str, np.ndarray]  # by split, train and test: some of its rows, int64, ascending
NO_ROWS: Rows = {"train": np.empty(0, dtype=np.int64), "test": np.empty(0, dtype=np.int64)}


class ServerData(Part):
    """Where the server's samples come from. A subclass adds its `name`."""

    name: str

    @abstractmethod
    def draw(self, dataset: Dataset, there: Rows, generator: np.random.Generator) -> tuple[ServerSamples, Rows]:
        """Its samples, and which of the rows that are there they take away. ValueError if too few would be left."""


class NoServerData(ServerData):
    """The server has no data."""

    name: str = "none"

    def draw(self, dataset: Dataset, there: Rows, generator: np.random.Generator) -> tuple[ServerSamples, Rows]:
        """No samples."""
        del there, generator
        nothing = dataset.test.take(NO_ROWS["test"])
        return ServerSamples(nothing, dataset.num_classes, dataset.mean, dataset.std, True, nothing), NO_ROWS


def _take(key: str, samples: int, split: str, there: Rows, generator: np.random.Generator) -> np.ndarray:
    """So many rows of a split, ascending. ValueError if none would be left."""
    rows = there[split]
    if samples >= len(rows):
        raise ValueError(
            f"server_data {key} must be less than the {len(rows)} samples of the {split} set, from which they are "
            f"taken, got {samples}; lower it"
        )
    return np.sort(generator.permutation(rows)[:samples])


class InDomain(ServerData):
    """The server has samples like the clients': random ones, which then neither train clients nor evaluate."""

    name: str = "in_domain"
    samples: Count
    """How many."""
    split: Literal["test", "train"] = "test"
    """Which they are of. They are taken away: from what evaluates, or from the clients that held them."""

    def draw(self, dataset: Dataset, there: Rows, generator: np.random.Generator) -> tuple[ServerSamples, Rows]:
        """Samples of the rows that are there, and these rows. ValueError if none would be left."""
        taken = _take("in_domain: `samples`", self.samples, self.split, there, generator)
        split = dataset.test if self.split == "test" else dataset.train
        none = split.take(NO_ROWS["test"])
        samples = ServerSamples(split.take(taken), dataset.num_classes, dataset.mean, dataset.std, True, none)
        return samples, {**NO_ROWS, self.split: taken}


class _Undivided(OneOf):
    """One of several data sets, given without who holds which of it."""

    keys: ClassVar[dict[str, Any]] = {"clients": 1, "partition": {"name": "iid"}}

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        union = super().__get_pydantic_core_schema__(source, handler)
        return core_schema.no_info_before_validator_function(self._complete, union)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        names, _ = super().__get_pydantic_json_schema__(schema, handler)["anyOf"]
        return {"anyOf": [names, {"type": "object", "properties": {"name": names}, "required": ["name"]}]}

    def _complete(self, value: Any) -> Any:
        block = spell_out(value)
        return {**self.keys, **block} if isinstance(block, dict) else block


class OutOfDomain(ServerData):
    """The server has labelled images of another data set, made as large as the clients'."""

    name: str = "out_of_domain"
    data: Annotated[Images, _Undivided(IMAGES)]
    """Any data set of images, without `clients` and what else is about them."""
    samples: Count | None = None
    """How many of its training samples, drawn at random. null: all."""
    reference: Annotated[int, Field(ge=0)] = 0
    """So many test samples of the clients' kind are taken for comparison: the `similarity` of the table of steps. It
    takes a pass through these and the server's samples, which counts as work of the server."""

    @model_validator(mode="after")
    def _belongs_to_nobody(self) -> Self:
        usual = {key: field.default for key, field in type(self.data).model_fields.items()}
        usual |= {"clients": 1, "partition": Iid()}
        of_clients = ("clients", "partition", "local_test", "unseen", "label_noise")
        if given := [key for key in of_clients if getattr(self.data, key) != usual[key]]:
            raise ValueError(f"`data` must not say what is for clients, got {', '.join(given)}; leave that out")
        return self

    def draw(self, dataset: Dataset, there: Rows, generator: np.random.Generator) -> tuple[ServerSamples, Rows]:
        """Samples of the other data set, and rows taken for reference. ValueError if there are too few."""
        other = self.data.load()
        number = len(other.train) if self.samples is None else self.samples
        if number > len(other.train):
            raise ValueError(
                f"server_data out_of_domain: `samples` must be at most {len(other.train)}, the training samples of "
                f"{self.data.name}, got {number}; lower it"
            )
        taken = other.train
        if number < len(taken):
            taken = taken.take(np.sort(generator.permutation(len(taken))[:number]))
        height, width, channels = dataset.train.x.shape[1:]
        x = fit(taken.x, height, width, channels)
        rows = _take("out_of_domain: `reference`", self.reference, "test", there, generator)
        mean, std = self.data.statistics(x)
        samples = ServerSamples(Split(x, taken.y), other.num_classes, mean, std, False, dataset.test.take(rows))
        return samples, {**NO_ROWS, "test": rows}


SERVER_DATA: tuple[type[ServerData], ...] = (NoServerData, InDomain, OutOfDomain)
