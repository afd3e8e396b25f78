"""The base of everything that a scenario file can name."""

import ast
import inspect
from itertools import pairwise
from typing import Annotated, Any, get_args

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]


class Part(BaseModel):
    """A frozen, picklable block of a scenario file: its fields are the YAML keys, unknown keys are errors.

    The first line of a part's docstring is what `raysim list` prints. The string below a field is its description in
    the JSON Schema.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = handler(core)
        descriptions = _descriptions(cls)
        properties = handler.resolve_ref_schema(schema)["properties"]
        for name in cls.model_fields.keys() & descriptions.keys():
            properties[name]["description"] = descriptions[name]
        return schema


def _descriptions(part: type[Part]) -> dict[str, str]:
    """Returns the strings below the fields of a part, by field.

    Pydantic's `use_attribute_docstrings` would read them whenever a class is made, and `raysim` would start a quarter
    slower.
    """
    found = {}
    for base in reversed(part.__mro__):
        if issubclass(base, Part):
            (definition,) = ast.parse(inspect.getsource(base)).body
            for field, below in pairwise(definition.body):  # type: ignore[attr-defined]
                match field, below:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                        found[name] = inspect.cleandoc(text)
    return found


def parts_of(annotation: Any) -> list[type[Part]]:
    """Returns all parts that an annotation allows."""
    if isinstance(annotation, type) and issubclass(annotation, Part):
        return [annotation]
    return [part for argument in get_args(annotation) for part in parts_of(argument)]


class _Named:
    """Lets a bare name stand for a part, in scenario files and in their JSON Schema."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(_spell_out, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        blocks = handler(schema)
        return {"anyOf": [{"enum": list(blocks["discriminator"]["mapping"])}, blocks]}


def _spell_out(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


# `delay: none` in a scenario file is short for `delay: {name: none}`.
Named = _Named()
