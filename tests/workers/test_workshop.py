"""What actors become."""

from pathlib import Path

import pytest
from conftest import digits

from actors import Gang, Value
from raysim import BadInput, parse_scenario
from raysim.models import Module
from raysim.workers.shared_requests import LoadRequest
from raysim.workers.workshop import Become, Workshop


def test_models_read_the_same_files_on_all_nodes(tmp_path: Path) -> None:
    weights = tmp_path / "w.pt"
    weights.write_bytes(b"0123")
    scenario = parse_scenario(digits(model=Module(module="torch.nn:Identity", weights=str(weights))))
    loaded = LoadRequest(Value(scenario)).call(object(), Gang())
    become, shop = Become(loaded.left, loaded.result), Workshop(scenario, 0.0)
    weights.write_bytes(b"another")
    with pytest.raises(BadInput, match=f"must read the same files on all nodes, .* at {weights}"):
        become.build(shop)
