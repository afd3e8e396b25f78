"""Jobs of the tests' own, which know nothing of federated learning. They lie where the workers of a Ray find them."""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from actors import Answer, Gang, Group, Pool, Query, Request, Setup, Value, finished


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
class Add(Request[int, tuple[Value[int]]]):
    """Gives the amount, and leaves the sum."""

    name = "add"
    number: int

    def leaves(self) -> tuple[Value[int]]:
        return (Value(),)

    def call(self, worker: Adder, gang: Gang) -> Answer[int, tuple[Value[int]]]:
        return Answer(worker.amount, (Value(self.number + worker.amount),))


@dataclass(frozen=True)
class Sleep(Query[None]):
    name = "sleep"
    seconds: float

    def ask(self, worker: Adder) -> None:
        time.sleep(self.seconds)


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
class AddOrDieOnce(Query[int]):
    name = "die_once"
    mark: str
    number: int

    def ask(self, worker: Adder) -> int:
        die_once(self.mark)
        return self.number + worker.amount


class Carried(NamedTuple):
    total: Value[int]
    same: Value[str]


@dataclass(frozen=True)
class Carry(Request[str, Carried]):
    """Adds one to a sum, and passes on the rest. Where there is no mark yet, its worker dies."""

    name = "carry"
    total: Value[int]
    same: Value[str]
    mark: str = ""

    def leaves(self) -> Carried:
        return Carried(Value(), Value(former=self.same))

    def call(self, worker: Adder, gang: Gang) -> Answer[str, Carried]:
        if self.mark:
            die_once(self.mark)
        total = self.total.content + 1
        return Answer(f"{total} {self.same.content}", Carried(Value(total), self.same))


def dying() -> Adder:
    os._exit(1)


@dataclass(frozen=True)
class Telling:
    """A program that notes how it ended. act: what it does after its first item."""

    note: Path
    act: str

    def __call__(self, pool: Pool) -> Iterator[int]:
        try:
            pool.start(Group("client", Adder, 1))
            yield 1
            if self.act == "warn":
                pool.warnings.append("careful")
                return
            if self.act == "exit":
                os._exit(1)
            if self.act == "raise":
                raise ZeroDivisionError("of the program")
            self.note.write_text("waits")
            finished(pool, pool.submit("client", Sleep(600.0)))
        except BaseException as error:
            self.note.write_text(type(error).__name__)
            raise


@dataclass(frozen=True)
class Pid(Query[int]):
    """The process of the worker, and what it leaves behind there."""

    name = "pid"
    leftover: str = ""

    def ask(self, worker: Adder) -> int:
        if self.leftover:
            os.environ["LEFTOVER"] = self.leftover
        return os.getpid()


@dataclass(frozen=True)
class DivideByZero(Query[None]):
    name = "divide_by_zero"

    def ask(self, worker: Adder) -> None:
        raise ZeroDivisionError("of a job")


@dataclass(frozen=True)
class Processes:
    """A program that yields the processes of its scheduler and its two workers, after each has done a job.

    then: a request that the first worker gets next.
    """

    then: Request[Any, Any] | None = None

    def __call__(self, pool: Pool) -> Iterator[tuple[int, ...]]:
        for group in ("one", "two"):
            pool.start(Group(group, Adder, 1))
        pool.set_up({"one": Attach(1), "two": Attach(1)})
        jobs = [pool.submit(group, Pid()) for group in ("one", "two")]
        yield os.getpid(), *(finished(pool, job).result for job in jobs)
        if self.then:
            finished(pool, pool.submit("one", self.then))


# --- done by a gang ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tell(Request[Any, tuple[Value[str]]]):
    """Answers differ on purpose."""

    name = "tell"
    together = True
    number: int

    def leaves(self) -> tuple[Value[str]]:
        return (Value(),)

    def call(self, worker: Any, gang: Gang) -> Answer[Any, tuple[Value[str]]]:
        told = gang.gather((gang.rank, self.number))
        return Answer((gang.rank, gang.size, told), (Value(f"left by {gang.rank}"),))


class LeavesNothing(Request[Any, tuple[()]]):
    """Leaves nothing, but wants to know the gang."""

    def leaves(self) -> tuple[()]:
        return ()


@dataclass(frozen=True)
class DieOnceTogether(LeavesNothing):
    """The last one does, while the others wait for it."""

    name = "die_once"
    together = True
    mark: str
    number: int

    def call(self, worker: Any, gang: Gang) -> Answer[list[int], tuple[()]]:
        if gang.rank == gang.size - 1 and not Path(self.mark).exists():
            Path(self.mark).touch()
            os._exit(1)
        return Answer(gang.gather(gang.rank + self.number), ())


@dataclass(frozen=True)
class DieLate(LeavesNothing):
    """The last one does, once there is the mark; the others have answered by then."""

    name = "die_late"
    together = True
    mark: str

    def call(self, worker: Any, gang: Gang) -> Answer[None, tuple[()]]:
        gang.gather(None)
        while gang.rank == gang.size - 1:
            if Path(self.mark).exists():
                os._exit(1)
            time.sleep(0.01)
        return Answer(None, ())


@dataclass(frozen=True)
class LingerOnce(LeavesNothing):
    """Makes the mark, and stays until somebody ends it; not where there is the mark."""

    name = "linger_once"
    mark: str

    def call(self, worker: Any, gang: Gang) -> Answer[str, tuple[()]]:
        if not Path(self.mark).exists():
            Path(self.mark).touch()
            time.sleep(600)
        return Answer("done", ())


@dataclass(frozen=True)
class DieTogether(LeavesNothing):
    name = "die"
    together = True

    def call(self, worker: Any, gang: Gang) -> Answer[None, tuple[()]]:
        if gang.rank == 1:
            os._exit(1)
        gang.gather(None)
        return Answer(None, ())


@dataclass(frozen=True)
class Fail(LeavesNothing):
    name = "fail"
    together = True
    ranks: tuple[int, ...]

    def call(self, worker: Any, gang: Gang) -> Answer[None, tuple[()]]:
        if gang.rank in self.ranks:
            raise ZeroDivisionError(f"of member {gang.rank}")
        gang.gather(None)
        return Answer(None, ())


class Passed(NamedTuple):
    """What passing on leaves."""

    new: Value[Any]
    second: Value[Any]
    first: Value[Any]


@dataclass(frozen=True)
class PassOn(Request[None, Passed]):
    """Leaves something new, and what it was given."""

    name = "pass_on"
    first: Value[Any]
    second: Value[Any]

    def leaves(self) -> Passed:
        return Passed(Value(), Value(former=self.second), Value(former=self.first))

    def call(self, worker: Any, gang: Gang) -> Answer[None, Passed]:
        return Answer(None, Passed(Value(self.second.content + self.first.content), self.second, self.first))


class PassOnTogether(PassOn):
    """Done by all."""

    together = True
