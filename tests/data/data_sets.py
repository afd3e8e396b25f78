"""Parts of scenarios that say which data there are, and what is made of them."""

from typing import Annotated, Any

import numpy as np
from conftest import Raw
from pydantic import TypeAdapter

from raysim.data import SERVER_DATA, SOURCES, Dataset, Federation, ServerData, Source, federate, loaded
from raysim.data.federation.server import Public
from raysim.parts.part import OneOf, as_tuples
from raysim.parts.rng import generator

DATA: TypeAdapter[Any] = TypeAdapter(Annotated[Source, OneOf(SOURCES)])
SERVER: TypeAdapter[Any] = TypeAdapter(Annotated[ServerData, OneOf(SERVER_DATA)])
NO_SERVER = SERVER.validate_python("none")


def part(**settings: Any) -> Any:
    """A data part, as a scenario file gives it: lists become tuples, as fields are strict."""
    return DATA.validate_python(as_tuples(settings))


def load(**settings: Any) -> Dataset:
    among = {} if "clients" in settings else {"clients": 2, "partition": "iid"}
    return loaded.load(part(**among, **settings))


def digits(**settings: Any) -> Any:
    """The data part of the digits."""
    return part(**{"name": "digits", "clients": 10, "partition": "iid", **settings})


def random_images(*shape: int) -> np.ndarray:
    return generator(0, "images", len(shape)).integers(256, size=shape, dtype=np.uint8)


def federation(server_data: Any = "none", seed: int = 0, public: Raw | None = None, **settings: Any) -> Federation:
    """The federation of the digits."""
    return federate(digits(**settings), SERVER.validate_python(server_data), seed, Public(**(public or {})))
