"""Checks of the URIs that a scenario names, before anything looks at what is there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from raysim.parts.errors import Problem
from raysim.parts.part import Part
from results.location import UnknownLocation, is_uri, location


def location_problems(part: Part) -> Iterator[Problem]:
    """Yields a problem for each URI whose scheme is not known, or whose library is not installed.

    Texts in parts of the user's own may be anything, and are not looked at.
    """
    for path, text in _texts(part, ""):
        if is_uri(text):
            try:
                location(text)
            except UnknownLocation as error:
                yield Problem(path, str(error))


def _texts(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yields the texts in a part of raysim, with the dotted paths of their keys."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Part) and type(value).__module__.startswith("raysim."):
        for key, inner in value:
            yield from _texts(inner, f"{path}.{key}".lstrip("."))
    elif isinstance(value, tuple) and value and isinstance(value[0], str | Part):
        for place, inner in enumerate(value):
            yield from _texts(inner, f"{path}.{place}")
