"""Plain data, as files hold them: dictionaries, lists, tuples, texts and numbers."""

from typing import Any


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
