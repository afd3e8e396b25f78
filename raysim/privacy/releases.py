"""All releases. To add one, put it into `RELEASES`."""

from typing import Annotated, Any

from pydantic import BeforeValidator

from raysim.parts.part import OneOf
from raysim.privacy.release import GaussianRelease, Release

RELEASES: tuple[type[Release], ...] = (GaussianRelease,)


def _none(value: Any) -> Any:
    return None if value == "none" else value


ARelease = Annotated[Annotated[Release, OneOf(RELEASES, "raysim.release")] | None, BeforeValidator(_none)]
