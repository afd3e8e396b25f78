"""The base of everything that a scenario file can name."""

import ast
import inspect
from collections.abc import Iterable
from itertools import pairwise
from typing import Annotated, Any, get_args

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from raysim.errors import quoted

Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1, le=2**31 - 1)]  # tables hold counts in 32 bits


class Part(BaseModel):
    """A frozen, picklable block of a scenario file: its fields are the YAML keys, unknown keys are errors.

    A part that is one of several has a name, by which scenario files choose it: `name: str = "fedbuff"`. The first line
    of a part's docstring is what `raysim list` prints. The string below a field is its description in the JSON Schema.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    def model_post_init(self, context: Any) -> None:
        """Refuses the name of another part. A field validator would do it, too, but adds to the time of `raysim`."""
        own = names_of(type(self))
        if own and (name := vars(self)["name"]) not in own and ":" not in name:  # module:Class is a user's own class
            raise ValueError(f"`name` must be {' or '.join(map(repr, own))}, got {quoted(name)}")

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = handler(core)
        properties = handler.resolve_ref_schema(schema)["properties"]
        descriptions = _descriptions(cls)
        for field in cls.model_fields.keys() & descriptions.keys():
            properties[field]["description"] = descriptions[field]
        if len(own := names_of(cls)) == 1:
            properties["name"]["const"] = own[0]
        return schema


def _descriptions(part: type[Part]) -> dict[str, str]:
    """Returns the strings below the fields of a part, by field.

    Pydantic's `use_attribute_docstrings` would read them whenever a class is made, and starting `raysim` would take a
    quarter longer.
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


def names_of(part: type[Part]) -> tuple[str, ...]:
    """Returns the names by which scenario files choose a part; () if it is not one of several."""
    field = part.model_fields.get("name")
    if field is None or field.is_required():
        return ()
    return get_args(field.annotation) or (field.default,)  # a Literal holds several names


class OneOf:
    """Says which parts a field may hold, where its annotation is their base class.

    In `delay: Annotated[Delay, OneOf(DELAYS)]`, mypy sees a Delay, and pydantic a union of all DELAYS, told apart by
    their names. In scenario files, `delay: none` is short for `delay: {name: none}`. Raises TypeError if a part has no
    name or two parts have the same one.
    """

    def __init__(self, parts: Iterable[type[Part]]) -> None:
        self.parts = tuple(parts)
        self._by_name: dict[str, type[Part]] = {}
        for part in self.parts:
            if not (names := names_of(part)):
                raise TypeError(f"{part.__qualname__}: must have a name, such as `name: str = 'fedbuff'`, got none")
            for name in names:
                if other := self._by_name.get(name):
                    text = f"must belong to one part only, got it in {other.__qualname__} and in {part.__qualname__}"
                    raise TypeError(f"name {name!r}: {text}; rename one")
                self._by_name[name] = part

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        del source
        choices = {name: handler.generate_schema(part) for name, part in self._by_name.items()}
        union = core_schema.tagged_union_schema(choices, discriminator="name")
        return core_schema.no_info_before_validator_function(spell_out, union)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [{"enum": list(self._by_name)}, handler(schema)]}


def spell_out(value: Any) -> Any:
    """Returns the block that a bare name is short for, and any other value as it is."""
    return {"name": value} if isinstance(value, str) else value


def parts_of(annotation: Any) -> list[type[Part]]:
    """Returns all parts that an annotation allows."""
    for extra in getattr(annotation, "__metadata__", ()):
        if isinstance(extra, OneOf):
            return list(extra.parts)
    if isinstance(annotation, type) and issubclass(annotation, Part):
        return [annotation]
    return [part for argument in get_args(annotation) for part in parts_of(argument)]
