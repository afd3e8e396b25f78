"""Runs that run out of memory say which keys of the scenario to change."""

from pathlib import Path

import pytest
from conftest import digits

import raysim


def failed(folder: Path, **changes: object) -> str:
    with pytest.raises(raysim.RunFailed) as caught:
        raysim.run(digits(**changes), out=folder, inline=True)
    (run,) = folder.iterdir()
    assert str(caught.value) in raysim.Result(run).info["error"]
    return str(caught.value)


def test_of_a_gpu(tmp_path: Path) -> None:
    text = failed(tmp_path, algorithm="toys:Hungry", resources__client_actors=4)
    assert "OutOfMemoryError: CUDA out of memory. - client " in text
    assert "raise that of resources.gpus_per_client (0), or of resources.gpus_per_aggregator (0), " in text
    assert "with fewer resources.client_actors (4), or lower local.batch_size (16) or resources.chunk (3); " in text


def test_of_a_node(tmp_path: Path) -> None:
    text = failed(tmp_path, algorithm={"name": "toys:Hungry", "of_gpu": False})
    assert "MemoryError: Unable to allocate 9 TiB" in text
    assert "; lower resources.client_actors (2), raise resources.cpus_per_client (1) so that fewer share a node" in text
