"""The base of everything that a scenario file can name."""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]


class Part(BaseModel):
    """A frozen, picklable block of a scenario file: its fields are the YAML keys, unknown keys are errors.

    The first line of a part's docstring is what `raysim list` prints.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def _spell_out(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


# `delay: none` in a scenario file is short for `delay: {name: none}`.
Named = BeforeValidator(_spell_out)
