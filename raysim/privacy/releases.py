"""All releases. To add one, put it into `RELEASES`."""

from typing import Annotated, Any

from pydantic import BeforeValidator

from raysim.parts.part import OneOf
from raysim.privacy.discrete import DiscreteRelease
from raysim.privacy.matrix import MatrixRelease
from raysim.privacy.release import GaussianRelease, Release
from raysim.privacy.tree import TreeRelease

RELEASES: tuple[type[Release], ...] = (GaussianRelease, TreeRelease, MatrixRelease, DiscreteRelease)


def _none(value: Any) -> Any:
    return None if value == "none" else value


ARelease = Annotated[Annotated[Release, OneOf(RELEASES)] | None, BeforeValidator(_none)]
