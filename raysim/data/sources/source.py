"""The base of all sources of data: what loads samples, and says what they are."""

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, cast, get_args

from pydantic import Field

from raysim.data.dataset import Dataset
from raysim.data.meaning import InputMeaning
from raysim.data.sources.inputs import named_or_plain
from raysim.parts.part import Part, Samples, Unit
from raysim.terms import Inputs

Share = Annotated[float, Field(gt=0, lt=1), Unit("fraction")]  # more than nothing and less than all


class Source(Part):
    """Where samples come from. A subclass adds its `name`, its own keys, and `load`.

    A source does not say who holds which samples: `Federated` adds the keys for that, and a source that is made with
    some of them, such as `clients`, is a `Federated`.
    """

    name: str
    train_samples: Samples | None = None
    """Number of training samples to use: the first ones in stored order, equally many of each label where each sample
    has one. null: all."""
    test_samples: Samples | None = None
    """Number of test samples to use, chosen as training samples are. null: all."""

    holds: ClassVar[tuple[Inputs, ...]] = get_args(Inputs)
    """What inputs are or, where that is known only once they are loaded, what they may be."""
    has_test_set: ClassVar[bool] = True
    """Whether there are test samples beside those that train."""
    usual: ClassVar[Mapping[str, Any]] = {}
    """Defaults of the keys `partition` and `local_test` that this source has in place of the usual ones, by key."""

    class_for: ClassVar[Callable[[Any, Collection[str]], Any]] = staticmethod(lambda source, keys: source)
    """Returns the class of what is made of this one with some keys. The federation, whose keys may be among them, sets
    it."""

    def __new__(cls, **keys: Any) -> Self:
        return cast("Self", super().__new__(Source.class_for(cls, keys)))

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
        return ()

    @abstractmethod
    def load(self) -> Dataset:
        """Loads the data set. Raises FileNotFoundError, saying what to do, if it is not on this machine."""

    def inputs_of(self, given: Any, inputs: InputMeaning, folder: Path) -> Any:
        """Returns new inputs, in the form that a user has them in, as `Split` holds inputs before they are scaled.

        inputs: what those are that the model was trained on. folder: the run's, with the files that it keeps. Raises
        ValueError if they are something else.
        """
        return named_or_plain(given, inputs)

    def whole(self) -> Self:
        """Returns the source without a limit to its training samples."""
        return self if self.train_samples is None else self.model_copy(update={"train_samples": None})

    def problems(self) -> list[str]:
        """Lists what is wrong with the source's own keys, as far as can be told without data."""
        return []
