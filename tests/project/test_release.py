"""The version is the same in the package, the citation and the changelog; checks before commits need no network."""

import re

import pytest
from conftest import ROOT
from ruamel.yaml import YAML

import raysim


def test_the_citation_is_of_this_version() -> None:
    citation = YAML(typ="safe").load(ROOT / "CITATION.cff")
    assert citation["version"] == raysim.__version__
    assert citation["license"] == "Apache-2.0"
    assert {"cff-version", "title", "message", "authors"} <= citation.keys()


def test_the_changelog_begins_with_this_version() -> None:
    headings = re.findall(r"^## \[(.+?)\] - (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0][0] == raysim.__version__
    assert all(when == "Unreleased" or re.fullmatch(r"\d{4}-\d\d-\d\d", when) for _, when in headings)


@pytest.mark.parametrize("hook", YAML(typ="safe").load(ROOT / ".pre-commit-config.yaml")["repos"])
def test_a_commit_needs_no_network(hook: dict[str, str]) -> None:
    assert hook["repo"] == "local"
