"""The base of everything that a scenario file can name."""

import ast
import inspect
import math
from collections.abc import Callable, Iterable
from functools import cache
from itertools import pairwise
from numbers import Real
from pathlib import Path
from typing import Annotated, Any, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from raysim.parts.errors import quoted
from raysim.parts.own import WrongClass, import_class, path_of, require_part
from results.texts import in_bytes


class Unit:
    """The unit of the numbers in a field, which `raysim list`, the documentation and the JSON Schema show."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(schema), "unit": self.text}


OWN = "^[^:]+:[^:]+$"  # module:Class, the name of a class from outside, as a pattern of the JSON Schema
Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Decay = Annotated[float, Field(ge=0, lt=1)]  # factor of a running mean; with 1, the mean would stay at 0
Bytes = Annotated[
    Positive,
    BeforeValidator(in_bytes, json_schema_input_type=Positive | Annotated[str, Field(pattern="B$")]),
    Unit("bytes"),
]
Count = Annotated[int, Field(ge=1, le=2**31 - 1)]  # tables hold counts in 32 bits
Seconds = Annotated[NonNegative, Unit("s")]
Share = Annotated[Fraction, Unit("fraction")]
Clients = Annotated[Count, Unit("clients")]
Epochs = Annotated[Count, Unit("epochs")]
Pixels = Annotated[Count, Unit("pixels")]
Rounds = Annotated[Count, Unit("rounds")]
Samples = Annotated[Count, Unit("samples")]


class Part(BaseModel):
    """A frozen, picklable block of a scenario file: its fields are the YAML keys, unknown keys are errors.

    A part that is one of several has a name, by which scenario files choose it: `name: str = "fedbuff"`. The first line
    of a part's docstring is what `raysim list` prints. The string below a field is its description in the JSON Schema.
    """

    # Deferred: there are some two hundred parts, and a command that reads no scenario needs none of their validators.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)

    def model_post_init(self, context: Any) -> None:
        """Refuses the name of another part. A field validator would do it, too, but adds to the time of `raysim`."""
        own = names_of(type(self))
        if own and (name := vars(self)["name"]) not in own and ":" not in name:  # module:Class is a user's own class
            raise ValueError(f"`name` must be {' or '.join(map(repr, own))}, got {quoted(name)}")

    def reads(self) -> Iterable[str | Path]:
        """Returns the files and folders that the part reads. If one of them changes, finished runs are out of date."""
        return ()

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


@cache
def _descriptions(part: type[Part]) -> dict[str, str]:
    """Returns the strings below the fields of a part, by field.

    Pydantic's `use_attribute_docstrings` would read them whenever a class is made, and starting `raysim` would take a
    quarter longer.
    """
    found = {}
    for base in reversed(part.__mro__):
        if issubclass(base, Part):
            try:
                (definition,) = ast.parse(inspect.getsource(base)).body
            except OSError:  # a class that was made by a call, and so has no fields of its own
                continue
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

    In `delay: Annotated[Delay, OneOf(DELAYS)]`, mypy sees a Delay, and pydantic one of these:

    - a block with the name of one of DELAYS, or that name alone: `delay: none` is short for `delay: {name: none}`;
    - a block with the name module:Class, for a subclass of Delay that can be imported;
    - in Python, an object of any subclass of Delay.

    Raises TypeError if a part has no name or two parts have the same one.
    """

    bases: tuple[type[Part], ...] = ()  # the classes in the annotation; one of them is the base of every part

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

    def find(self, name: str) -> type[Part] | None:
        """Returns the part that a name chooses; None if there is none of this name.

        Raises own.WrongClass if the name is that of a class from outside that cannot be such a part.
        """
        found: type[Part] | None = self._by_name.get(name)
        if found is None and ":" in name:
            found = import_class(name)
            require_part(found, self.bases, name)
        return found

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        self.bases = get_args(source) or (source,)  # the members of a union, or the only class
        choices = {name: handler.generate_schema(part) for name, part in self._by_name.items()}
        union = core_schema.tagged_union_schema(choices, discriminator="name")
        return core_schema.no_info_wrap_validator_function(self._validate, union)

    def _validate(self, value: Any, among_parts: Callable[[Any], Any]) -> Any:
        """Returns the part that a value stands for. among_parts: validates a block with the name of one of `parts`."""
        block = spell_out(value)
        name = block.get("name") if isinstance(block, dict) else None
        try:
            if isinstance(value, Part):
                return self._renamed(value)
            part = self.find(name) if isinstance(name, str) else None
        except WrongClass as error:
            raise PydanticCustomError("wrong_class", "{text}", {"text": str(error)}) from error
        return among_parts(block) if part is None or part in self.parts else part.model_validate(block)

    def _renamed(self, part: Part) -> Part:
        """Returns an object as it is. If its class is from outside, its name becomes module:Class, so that files can
        choose it."""
        if type(part) in self.parts:
            return part
        path = path_of(type(part))
        require_part(type(part), self.bases, path)
        return part if ":" in vars(part)["name"] else part.model_copy(update={"name": path})

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Returns what a field may hold. The keys of a class that is named by module:Class are not known here."""
        own = {"type": "string", "pattern": OWN}
        block_of_own = {"type": "object", "properties": {"name": own}, "required": ["name"]}
        return {"anyOf": [{"enum": [*self._by_name]}, handler(schema), own, block_of_own]}


def spell_out(value: Any) -> Any:
    """Returns the block that a bare name is short for, and any other value as it is."""
    return {"name": value} if isinstance(value, str) else value


def one_of(annotation: Any) -> OneOf | None:
    """Returns the OneOf of an annotation; None if it has none."""
    for extra in getattr(annotation, "__metadata__", ()):
        if isinstance(extra, OneOf):
            return extra
    return next((found for argument in get_args(annotation) if (found := one_of(argument))), None)


def parts_of(annotation: Any) -> list[type[Part]]:
    """Returns all parts of raysim that an annotation allows."""
    if choice := one_of(annotation):
        return list(choice.parts)
    if isinstance(annotation, type) and issubclass(annotation, Part):
        return [annotation]
    return [part for argument in get_args(annotation) for part in parts_of(argument)]


# --- plain data, as files hold them -----------------------------------------------------------------------------------


def as_tuples(value: Any) -> Any:
    """Returns a value with all lists in it as tuples: fields of parts are tuples, and accept no lists."""
    if isinstance(value, dict):
        return {key: as_tuples(inner) for key, inner in value.items()}
    return tuple(map(as_tuples, value)) if isinstance(value, list) else value


def as_lists(value: Any) -> Any:
    """Returns a value with all tuples in it as lists, as a file holds them."""
    if isinstance(value, dict):
        return {key: as_lists(inner) for key, inner in value.items()}
    return [as_lists(inner) for inner in value] if isinstance(value, list | tuple) else value


def is_number(value: Any) -> bool:
    """Whether a value is a real number, of Python or of numpy."""
    return isinstance(value, (float, Real))  # most are of the first, which is found out sooner


def is_finite(value: Any) -> bool:
    """Whether a value is a finite number, and not True or False."""
    if type(value) is float:  # like most, which is found out sooner
        return math.isfinite(value)
    return is_number(value) and not isinstance(value, bool) and math.isfinite(value)
