"""What data the server itself has."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from raysim.data.dataset import Split
from raysim.part import Count, Named, Part


class NoServerData(Part):
    """The server has no data."""

    name: Literal["none"] = "none"

    def draw(self, test: Split, generator: np.random.Generator) -> np.ndarray:
        """No rows."""
        del test, generator
        return np.empty(0, dtype=np.int64)


class InDomain(Part):
    """The server has samples like the clients': random ones of the test set, which then do not evaluate."""

    name: Literal["in_domain"] = "in_domain"
    samples: Count
    """How many; taken from the test set."""

    def draw(self, test: Split, generator: np.random.Generator) -> np.ndarray:
        """Rows of the test set, ascending. ValueError if nothing would be left to evaluate on."""
        if self.samples >= len(test):
            raise ValueError(
                f"server_data in_domain: `samples` must be less than the {len(test)} samples of the test set, "
                f"from which they are taken, got {self.samples}; lower it"
            )
        return np.sort(generator.permutation(len(test))[: self.samples])


SERVER_DATA = (NoServerData, InDomain)
ServerData = Annotated[NoServerData | InDomain, Field(discriminator="name"), Named]
