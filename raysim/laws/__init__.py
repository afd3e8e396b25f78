"""The laws that parts keep, for `raysim test`: those of a user's own classes as well as those that come with raysim.

In your tests, `failures("my_module:MyClass")` is what fails.
"""

from collections.abc import Sequence
from pathlib import Path

from raysim.laws.subject import Subject


def failures(
    name: str, settings: Sequence[str] = (), *, scenario: str | Path | None = None, ray: bool = False
) -> list[str]:
    """Tries the laws of a part, and returns a text for each law that fails: the law, and what was got.

    name: module:Class, or the name of a part. settings: its keys, such as "alpha=0.1". scenario: a file to try it in.
    ray: whether to try the laws that need Ray. Raises raysim.parts.own.WrongClass if no part has that name, and
    ScenarioError for settings that cannot be read.
    """
    from raysim.laws.check import check

    subject = Subject(name, settings, None if scenario is None else Path(scenario))
    return [f"{found.law}: {found.text}" for found in check(subject, ray=ray) if found.state == "failed"]
