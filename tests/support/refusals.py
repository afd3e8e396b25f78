"""What is said of scenarios that are not right."""

from typing import Any

import pytest
from conftest import Raw

from raysim import ScenarioError, parse_scenario


def problems(raw: Any) -> dict[str, str]:
    """What is said of plain data, by path."""
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(raw)
    return {problem.path: problem.text for problem in caught.value.problems}


def told(raw: Any) -> str:
    """All of them, a line each, as users see them."""
    return "\n".join(f"{path}: {text}" for path, text in problems(raw).items())


def problem(raw: Any) -> str:
    """The only one, as users see it."""
    ((path, text),) = problems(raw).items()
    return f"{path}: {text}"


def compute(**changes: Raw) -> Raw:
    """A delay."""
    one = {"name": "constant", "value": 1.0}
    return {"name": "compute", "flops_per_s": one, "up_bytes_per_s": one, "down_bytes_per_s": one, **changes}
