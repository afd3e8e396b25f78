"""The queue of jobs: what is ready, and what may be given ahead of what it needs."""

from toys_jobs import Carry

from actors import Value
from actors.job import Job
from actors.queue import Queue


def chain(length: int) -> list[Job]:
    """Jobs of which each needs what the one before leaves."""
    jobs: list[Job] = []
    for _ in range(length):
        total, same = jobs[-1].left if jobs else (Value(0), Value("same"))
        jobs.append(Job.of("client", Carry(total, same), (), ""))
    return jobs


def test_a_job_may_follow_one_that_a_worker_has() -> None:
    queue = Queue()
    first, second, third = jobs = chain(3)
    for job in jobs:
        queue.add(job)
    assert (queue.first("client"), queue.ahead("client")) == (first, None)
    queue.give(first)
    assert (queue.first("client"), queue.ahead("client")) == (None, second)
    queue.give(second)
    assert queue.ahead("client") is third
    assert queue.waits(second) and not queue.waits(first)
    queue.release(first)
    assert not queue.waits(second)
    assert queue.first("client") is None  # a worker has it already
    queue.release(second)
    assert (queue.first("client"), queue.ahead("client")) == (third, None)


def test_what_followed_a_job_that_must_be_done_again_waits_for_it_again() -> None:
    queue = Queue()
    first, second, third = jobs = chain(3)
    for job in jobs:
        queue.add(job)
    for job in jobs:
        queue.give(job)
    assert queue.given_after(first) == [second]
    for job in (third, second, first):
        queue.add(job)
    assert (queue.first("client"), queue.ahead("client")) == (first, None)
    for job in jobs:
        queue.give(job)
        queue.release(job)
    assert queue.first("client") is queue.ahead("client") is None
