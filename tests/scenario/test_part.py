"""Parts of scenario files: their names, and fields that hold one of several."""

from typing import Annotated, Any

import pytest
from pydantic import ValidationError

from raysim.algorithms import DPSGD, FedAvg, FedBuff
from raysim.data.federation.partition import Iid
from raysim.parts.part import OneOf, Part, names_of, parts_of
from raysim.scenario import RunSettings
from raysim.world.delay import HalfNormalDelay


class Shape(Part):
    """A base."""

    name: str


class Square(Shape):
    """A part."""

    name: str = "square"
    side: float = 1.0


class Rhombus(Square):
    """A part with a name of its own, of a class with another."""

    name: str = "rhombus"


SHAPES = (Square, Rhombus)


class Picture(Part):
    """A block."""

    shape: Annotated[Shape, OneOf(SHAPES)] = Square()


@pytest.mark.parametrize(
    ("part", "names"),
    [(FedBuff, ("fedbuff",)), (DPSGD, ("d_psgd", "cdsgd")), (Rhombus, ("rhombus",)), (Shape, ()), (RunSettings, ())],
)
def test_a_part_s_names_are_those_that_its_class_declares(part: type[Part], names: tuple[str, ...]) -> None:
    assert names_of(part) == names


@pytest.mark.parametrize(("given", "kind"), [("square", Square), ({"name": "rhombus", "side": 2.0}, Rhombus)])
def test_a_name_chooses_a_part_with_or_without_other_keys(given: Any, kind: type[Shape]) -> None:
    assert type(Picture.model_validate({"shape": given}).shape) is kind
    assert parts_of(Picture.model_fields["shape"].rebuild_annotation()) == [Square, Rhombus]


@pytest.mark.parametrize(
    ("part", "settings"), [(FedBuff, {}), (FedAvg, {}), (Iid, {}), (DPSGD, {}), (HalfNormalDelay, {"sigma": 1.0})]
)
def test_a_part_refuses_the_name_of_another(part: type[Part], settings: dict[str, Any]) -> None:
    for name in names_of(part):
        assert part(name=name, **settings).name == name
    with pytest.raises(ValidationError, match=names_of(part)[0]):
        part(name="square", **settings)


def test_a_part_may_be_named_by_module_and_class() -> None:
    assert Square(name="shapes:Square").name == "shapes:Square"


def test_parts_of_one_name_or_of_none_are_refused() -> None:
    with pytest.raises(TypeError, match="name 'square': must belong to one part only, got it in Square and in Square"):
        OneOf((Square, Square))
    with pytest.raises(TypeError, match="Shape: must have a name"):
        OneOf((Square, Shape))
