"""Jobs of the tests' own, which know nothing of federated learning. They lie where the workers of a Ray find them."""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from actors import Answer, Gang, Group, Pool, Request, Setup, Value, finished


@dataclass(frozen=True)
class Adder:
    """Adds an amount."""

    amount: int = 0


@dataclass(frozen=True)
class Attach(Setup):
    """Gives the adder its amount."""

    amount: int

    def build(self, worker: Adder) -> Adder:
        return Adder(self.amount)


@dataclass(frozen=True)
class Add(Request[int]):
    """Gives the amount, and leaves the sum."""

    name = "add"
    leaves = 1
    number: int

    def call(self, worker: Adder, gang: Gang) -> Answer[int]:
        return Answer(worker.amount, (self.number + worker.amount,))


@dataclass(frozen=True)
class Sleep(Request[None]):
    name = "sleep"
    seconds: float

    def call(self, worker: Adder, gang: Gang) -> Answer[None]:
        time.sleep(self.seconds)
        return Answer(None)


@dataclass(frozen=True)
class Die(Setup):
    def build(self, worker: Adder) -> Adder:
        os._exit(1)


def die_once(mark: str) -> None:
    if not Path(mark).exists():
        Path(mark).touch()
        os._exit(1)


@dataclass(frozen=True)
class DieOnce(Setup):
    """Where there is no mark yet."""

    mark: str

    def build(self, worker: Adder) -> Adder:
        die_once(self.mark)
        return worker


@dataclass(frozen=True)
class AddOrDieOnce(Request[int]):
    name = "die_once"
    mark: str
    number: int

    def call(self, worker: Adder, gang: Gang) -> Answer[int]:
        die_once(self.mark)
        return Answer(self.number + worker.amount)


def dying() -> Adder:
    os._exit(1)


@dataclass(frozen=True)
class Telling:
    """A program that notes how it ended. act: what it does after its first item."""

    note: Path
    act: str

    def __call__(self, pool: Pool) -> Iterator[int]:
        try:
            pool.start(Group("client", Adder, 1, 0.0, 0.0))
            yield 1
            if self.act == "exit":
                os._exit(1)
            if self.act == "raise":
                raise ZeroDivisionError("of the program")
            finished(pool, pool.submit("client", Sleep(600.0)))
        except BaseException as error:
            self.note.write_text(type(error).__name__)
            raise


# --- done by a gang ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tell(Request[Any]):
    """Answers differ on purpose."""

    name = "tell"
    together = True
    leaves = 1
    number: int

    def call(self, worker: Any, gang: Gang) -> Answer[Any]:
        told = gang.gather((gang.rank, self.number))
        return Answer((gang.rank, gang.size, told), (f"left by {gang.rank}",))


@dataclass(frozen=True)
class DieOnceTogether(Request[list[int]]):
    """The last one does, while the others wait for it."""

    name = "die_once"
    together = True
    mark: str
    number: int

    def call(self, worker: Any, gang: Gang) -> Answer[list[int]]:
        if gang.rank == gang.size - 1 and not Path(self.mark).exists():
            Path(self.mark).touch()
            os._exit(1)
        return Answer(gang.gather(gang.rank + self.number))


@dataclass(frozen=True)
class DieLate(Request[None]):
    """The last one does, once there is the mark; the others have answered by then."""

    name = "die_late"
    together = True
    mark: str

    def call(self, worker: Any, gang: Gang) -> Answer[None]:
        gang.gather(None)
        while gang.rank == gang.size - 1:
            if Path(self.mark).exists():
                os._exit(1)
            time.sleep(0.01)
        return Answer(None)


@dataclass(frozen=True)
class LingerOnce(Request[str]):
    """Makes the mark, and stays until somebody ends it; not where there is the mark."""

    name = "linger_once"
    mark: str

    def call(self, worker: Any, gang: Gang) -> Answer[str]:
        if not Path(self.mark).exists():
            Path(self.mark).touch()
            time.sleep(600)
        return Answer("done")


@dataclass(frozen=True)
class DieTogether(Request[None]):
    name = "die"
    together = True

    def call(self, worker: Any, gang: Gang) -> Answer[None]:
        if gang.rank == 1:
            os._exit(1)
        gang.gather(None)
        return Answer(None)


@dataclass(frozen=True)
class Fail(Request[None]):
    name = "fail"
    together = True
    ranks: tuple[int, ...]

    def call(self, worker: Any, gang: Gang) -> Answer[None]:
        if gang.rank in self.ranks:
            raise ZeroDivisionError(f"of member {gang.rank}")
        gang.gather(None)
        return Answer(None)


@dataclass(frozen=True)
class PassOn(Request[None]):
    """Leaves something new, and what it was given."""

    name = "pass_on"
    leaves = 3
    first: Value[Any]
    second: Value[Any]

    def call(self, worker: Any, gang: Gang) -> Answer[None]:
        return Answer(None, (self.second.content + self.first.content, self.second, self.first))


class PassOnTogether(PassOn):
    """Done by all."""

    together = True
