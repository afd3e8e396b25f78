"""A process that answers calls, and comes back after its death."""

import os
from typing import Any

import pytest

from actors import Child, ChildDied


def double(number: int, tell: Any) -> int:
    return sum(tell(n) for n in range(number))


def die(tell: Any) -> None:
    os._exit(3)


def divide(tell: Any) -> float:
    return 1 / 0


def refuse(number: int) -> None:
    raise ConnectionRefusedError


def test_a_child_answers_is_answered_and_comes_back_after_its_death() -> None:
    child = Child()
    try:
        assert child.call(double, 4, tell=lambda n: 10 * n) == 60
        with pytest.raises(ZeroDivisionError):
            child.call(divide, tell=print)
        with pytest.raises(ChildDied, match="exit code 3"):
            child.call(die, tell=print)
        with pytest.raises(KeyError):  # raised here in the middle of a call
            child.call(double, 4, tell=lambda n: {}[n])
        with pytest.raises(ConnectionRefusedError):  # raised here, too: it is not the child's pipe that is closed
            child.call(double, 4, tell=refuse)
        assert child.call(double, 2, tell=lambda n: n) == 1
    finally:
        child.close()
