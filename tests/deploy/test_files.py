"""What `deploy/` and `cluster.yaml` say is what Ray and KubeRay understand, and the versions in them agree."""

import copy
import json
import re
import tomllib
from typing import Any

import pytest
from conftest import ROOT
from jsonschema import Draft7Validator, ValidationError
from packaging.requirements import Requirement
from ruamel.yaml import YAML

import raysim

FOR_RAY_UP = ("cluster.yaml", "deploy/gcp.yaml", "deploy/on-premise.yaml")
FOR_KUBERAY = ("deploy/kuberay-cluster.yaml", "deploy/kuberay-job.yaml")
PINNED = dict(
    line.split("==") for line in (ROOT / "deploy" / "requirements.txt").read_text().splitlines() if "==" in line
)


def read(name: str) -> Any:
    return YAML(typ="safe").load(ROOT / name)


def kuberay(file: Any) -> None:
    """Raises ValidationError as KubeRay's operator would refuse the file."""
    schemas = json.loads((ROOT / "tests" / "deploy" / "kuberay.json").read_text())
    schema = schemas[file["kind"]] | {"definitions": schemas["definitions"]}
    Draft7Validator(schema).validate(file)


@pytest.mark.parametrize("name", FOR_RAY_UP)
def test_ray_up_understands_the_file(name: str) -> None:
    from ray.autoscaler._private.util import prepare_config, validate_config

    validate_config(prepare_config(read(name)))
    with pytest.raises(Exception, match="Additional properties are not allowed"):
        validate_config(prepare_config(read(name) | {"setup_command": []}))


@pytest.mark.parametrize("name", FOR_RAY_UP)
def test_every_node_gets_the_token_and_asks_for_it(name: str) -> None:
    file = read(name)
    assert file["file_mounts"]["~/.ray/auth_token"] == "~/.ray/auth_token"
    told = [*file.get("docker", {}).get("run_options", []), *file["setup_commands"]]
    assert any("RAY_AUTH_MODE=token" in line for line in told)


@pytest.mark.parametrize("name", FOR_KUBERAY)
def test_kuberay_understands_the_file(name: str) -> None:
    file = read(name)
    kuberay(file)
    cluster = file["spec"].get("rayClusterSpec", file["spec"])
    assert cluster["authOptions"] == {"mode": "token"}
    for key, value in (("image", ["a list"]), ("images", "an unknown key")):
        wrong = copy.deepcopy(file)
        spec = wrong["spec"].get("rayClusterSpec", wrong["spec"])
        spec["workerGroupSpecs"][0]["template"]["spec"]["containers"][0][key] = value
        with pytest.raises(ValidationError):
            kuberay(wrong)


def test_one_version_of_ray_and_of_raysim_everywhere() -> None:
    text = "\n".join((ROOT / name).read_text() for name in (*FOR_RAY_UP, *FOR_KUBERAY, "deploy/Dockerfile"))
    assert set(re.findall(r"(?:rayproject/ray:|rayVersion: )([\d.]+)", text)) == {PINNED["ray"]}
    assert set(re.findall(r"your-registry/raysim:(\d\S+)", text)) == {raysim.__version__}


def test_the_fixed_versions_are_those_that_raysim_needs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    needed = project["dependencies"] + extras["gcs"] + extras["huggingface"] + extras["metrics"] + extras["s3"]
    for requirement in map(Requirement, needed):
        name = requirement.name.replace(".", "-")
        assert name in PINNED and requirement.specifier.contains(PINNED[name]), requirement
