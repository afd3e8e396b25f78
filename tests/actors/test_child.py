"""A process that follows orders, and comes back after its death."""

import os
from typing import Any

import pytest

from actors import Child, ChildDied
from actors.child import Tell


def follow(order: str | int, tell: Tell) -> Any:
    if order == "die":
        os._exit(3)
    if order == "divide":
        return 1 / 0
    return sum(tell(n) for n in range(int(order)))


def refuse(number: int) -> None:
    raise ConnectionRefusedError


def test_a_child_answers_is_answered_and_comes_back_after_its_death() -> None:
    child = Child(follow)
    try:
        assert child.call(4, lambda n: 10 * n) == 60
        with pytest.raises(ZeroDivisionError):
            child.call("divide", print)
        with pytest.raises(ChildDied, match="exit code 3"):
            child.call("die", print)
        with pytest.raises(KeyError):  # raised here in the middle of a call
            child.call(4, lambda n: {}[n])
        with pytest.raises(ConnectionRefusedError):  # raised here, too: it is not the child's pipe that is closed
            child.call(4, refuse)
        assert child.call(2, lambda n: n) == 1
    finally:
        child.close()
