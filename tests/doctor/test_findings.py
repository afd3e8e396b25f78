"""What is told of nodes that are not as a scenario needs them."""

from dataclasses import replace
from typing import Any

import pytest
from conftest import digits, override

from actors import OnNode
from raysim.doctor.findings import Finding, findings, paths_read
from raysim.doctor.node import Examination, Gpu, Node
from raysim.scenario import parse_scenario
from raysim.scenario.resources import Nodes

HERE = Examination(())({})
WEIGHTS = {"model": {"name": "torchvision", "model": "resnet18", "weights": "w.pth"}}


def place(address: str, node: Node | None = HERE, **more: Any) -> OnNode[Node]:
    given: dict[str, Any] = {"is_driver": address == "a", "resources": {"CPU": 2.0}, "labels": {}, **more}
    return OnNode(address, answer=node, **given)


def found(*places: OnNode[Node], **changes: Any) -> list[Finding]:
    return findings(parse_scenario(override(digits(), **changes)), places)


def test_nodes_that_are_alike_need_no_word() -> None:
    assert found(place("a"), place("b")) == []


def test_what_differs_is_told_with_the_nodes_and_the_cure() -> None:
    other = replace(HERE, software={**HERE.software, "raysim": "0.1.0 0000", "torch": "1.0"})
    told = found(place("a"), place("b", other), place("c"))
    assert [finding.kind for finding in told] == ["differs", "differs"]
    assert f"torch: {HERE.software['torch']} on a, c, 1.0 on b; install the same everywhere" in told[1].text
    assert "0.1.0 0000 on b" in told[0].text


def test_a_node_without_raysim_is_wrong() -> None:
    (told,) = found(place("a"), place("b", None, error="ModuleNotFoundError: No module named 'raysim'"))
    assert told.kind == "wrong"
    assert told.text.endswith("whether raysim is installed there, in the Python that runs Ray")


def test_data_that_another_node_has_are_told_with_its_name() -> None:
    data = {"name": "arrays", "path": "d.npz", "clients": 30, "partition": "iid"}
    without = replace(HERE, missing=("d.npz",))
    (told,) = found(place("a", without), place("b"), place("c", without), data=data)
    assert told.text == (
        "a: loads the data, and has no d.npz; it is on b: start the run there, or name that node by resources.load_on"
    )
    labelled = place("b", labels={"disk": "big"})
    assert found(place("a", without), labelled, data=data, resources__load_on={"labels": {"disk": "big"}}) == []


def test_weights_must_be_where_the_data_are_loaded() -> None:
    without = replace(HERE, missing=paths_read(parse_scenario(override(digits(), **WEIGHTS))))
    assert without.missing == ("w.pth",)
    assert found(place("a"), place("b", without), **WEIGHTS) == []
    (told,) = found(place("a", without), place("b"), **WEIGHTS)
    assert "a: loads the data, and has no w.pth; it is on b" in told.text


def test_a_gpu_that_torch_does_not_see_is_wrong_and_one_in_use_is_noted() -> None:
    gpu = Gpu("NVIDIA H200", 140 << 30, 140 << 30)
    node = replace(HERE, gpus=(gpu, gpu._replace(free_bytes=70 << 30)), torch_sees=1)
    wrong, note = found(place("a", node, resources={"GPU": 2.0}), resources__gpus_per_client=0.25)
    assert wrong.text.startswith("a: Ray has 2 GPU there, and torch sees 1 (torch ")
    assert note.text == "a: 70.0 GiB of GPU 1 are in use by others"


def test_an_instruction_set_that_a_cpu_lacks_is_wrong() -> None:
    old = replace(HERE, software={**HERE.software, "CPU": "AVX2"})
    (told,) = found(place("a", old), resources__cpu_capability="avx512")
    assert told.kind == "wrong"
    assert found(place("a", old), resources__cpu_capability="default") == []


@pytest.mark.parametrize(
    ("selector", "value", "fits"),
    [
        ("a", "a", True),
        ("a", "b", False),
        ("a", None, False),
        ("!a", "b", True),
        ("!a", None, True),
        ("in(a, b)", "b", True),
        ("in(a,b)", "c", False),
        ("!in(a, b)", "b", False),
    ],
)
def test_labels_are_compared_as_ray_compares_them(selector: str, value: str | None, fits: bool) -> None:
    assert Nodes(labels={"x": selector}).allow({"x": value} if value else {}) is fits
