"""Parts whose numbers may be schedules. The parts' own code does not mention schedules."""

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, Self, get_args

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter
from pydantic_core import CoreSchema, core_schema

from raysim.parts.part import OWN, OneOf, Part, names_of
from raysim.schedules.schedule import SCHEDULES, Schedule
from raysim.terms import Moment

SCHEDULE = "schedule"  # the title of what stands for a schedule in the JSON Schema
CHOICE = OneOf(SCHEDULES)


class Schedulable(Part):
    """A part of which any number may be given as a schedule, such as `lr: {name: cosine, start: 0.1, length: 100}`.

    Code that uses the part calls `at` first, and then sees numbers only.
    """

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        for field in cls.model_fields.values():
            takes = field.annotation is float or float in get_args(field.annotation)
            if takes and MAY_CHANGE not in field.metadata:
                field.metadata.append(MAY_CHANGE)

    def at(self, moment: Moment) -> Self:
        """Returns a copy in which each schedule, also in parts that it holds, is replaced by its value at a moment.

        Schedules over the steps of a training are left as they are.
        """
        changed = {key: new for key, old in vars(self).items() if (new := _at(old, moment)) is not old}
        return self.model_copy(update=changed) if changed else self

    @property
    def schedules(self) -> dict[str, Schedule]:
        """The schedules by key, also those of parts that it holds, whose keys are dotted paths."""
        found: dict[str, Schedule] = {}
        for key, value in self:
            if isinstance(value, Schedule):
                found[key] = value
            elif isinstance(value, Schedulable):
                found |= {f"{key}.{inner}": schedule for inner, schedule in value.schedules.items()}
        return found


def _at(value: Any, moment: Moment) -> Any:
    if isinstance(value, Schedule):
        return value if value.over == "steps" else value.at(moment)
    if isinstance(value, Schedulable):
        return value.at(moment)
    if isinstance(value, tuple):
        new = tuple(_at(one, moment) for one in value)
        return value if all(a is b for a, b in zip(new, value, strict=True)) else new
    return value


class _MayChange:
    """Metadata of a field that holds a number. It also lets in schedules, if the number may have all their values."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_wrap_validator_function(
            self._validate,
            handler(source),
            serialization=core_schema.wrap_serializer_function_ser_schema(_serialized, schema=handler(source)),
        )

    def _validate(self, value: Any, number: Callable[[Any], Any]) -> Any:
        if not isinstance(value, dict | Schedule):
            return number(value)
        schedule = _adapter().validate_python(value)
        for bound in schedule.bounds:
            number(bound)
        return schedule

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        names = [names_of(schedule)[0] for schedule in SCHEDULES]
        named = {"anyOf": [{"enum": names}, {"type": "string", "pattern": OWN}]}
        return {"anyOf": [handler(schema), {"title": SCHEDULE, "type": "object", "properties": {"name": named}}]}


MAY_CHANGE = _MayChange()


@cache  # built when the first schedule is read, because most scenarios have none
def _adapter() -> TypeAdapter[Schedule]:
    adapter: TypeAdapter[Schedule] = TypeAdapter(Annotated[Schedule, CHOICE])
    adapter.rebuild()  # else CHOICE would not know its base class until the first value is validated
    return adapter


def schedules() -> OneOf:
    """Returns the choice of schedules, which knows their base class once its validator is built."""
    _adapter()
    return CHOICE


def _serialized(value: Any, number: Callable[[Any], Any]) -> Any:
    return value.model_dump(mode="json") if isinstance(value, Schedule) else number(value)
