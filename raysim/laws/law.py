"""A law is a function whose docstring says what must hold. It raises Broken where that does not hold."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from actors.fault import describe

Law: TypeAlias = Callable[[Any], None]
Groups: TypeAlias = Sequence[Sequence[Law]]


class Broken(Exception):
    """A law does not hold. The text says where, what must hold, and what was got."""


class NotTried(Exception):
    """A law cannot be tried on this part. The text says why."""


class Judgement(NamedTuple):
    """What became of a law."""

    law: str
    state: Literal["ok", "failed", "not tried"]
    text: str = ""  # what was got, or why it was not tried


def judge(groups: Groups, subject: Any) -> Iterator[Judgement]:
    """Tries all laws on a subject, group after group.

    A group is tried only if no law of an earlier group failed: its laws build on those.
    """
    failed = ""
    for group in groups:
        outcomes = [Judgement(_text(law), "not tried", failed) if failed else _tried(law, subject) for law in group]
        yield from outcomes
        failed = failed or ("a law above it failed" if any(o.state == "failed" for o in outcomes) else "")


def _tried(law: Law, subject: Any) -> Judgement:
    try:
        law(subject)
    except NotTried as reason:
        return Judgement(_text(law), "not tried", str(reason))
    except (Exception, SystemExit) as error:  # what a user's class raises
        return Judgement(_text(law), "failed", str(error) if isinstance(error, Broken) else describe(error))
    return Judgement(_text(law), "ok")


def _text(law: Law) -> str:
    return (inspect.getdoc(law) or "").partition("\n")[0].rstrip(".")
