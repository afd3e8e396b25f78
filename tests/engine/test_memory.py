"""Runs that run out of memory say which keys of the scenario to change."""

from pathlib import Path

import pytest
from conftest import digits

import raysim
from actors import JobFailed
from raysim.runs.order import explained


def test_an_inline_run_is_told_what_a_client_may_do_with_less(tmp_path: Path) -> None:
    """The number of actors changes nothing there."""
    with pytest.raises(raysim.RunFailed) as caught:
        raysim.run(digits(algorithm={"name": "toys:Hungry", "of_gpu": False}), out=tmp_path, inline=True)
    (run,) = tmp_path.iterdir()
    text = str(caught.value)
    assert text in raysim.Result(run).info["error"]
    assert "MemoryError: Unable to allocate 9 TiB - client " in text
    assert "; lower local.batch_size (16) or resources.chunk (3)" in text


@pytest.mark.parametrize(
    ("memory", "advice"),
    [
        ("gpu", "; lower resources.client_actors (2), raise resources.gpus_per_client (0), or lower local.batch"),
        ("node", "; lower resources.client_actors (2), raise resources.cpus_per_client (1), or lower local.batch"),
    ],
)
def test_on_ray_fewer_actors_help(memory: str, advice: str) -> None:
    failed = JobFailed("client 3", "it ran out of memory", "", memory=memory)
    assert advice in str(explained(failed, raysim.parse_scenario(digits())))
