"""What is published: its version, its name, its addresses and links, the files that its pages name; checks before
commits need no network."""

import json
import re
import runpy
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from conftest import ROOT
from ruamel.yaml import YAML

import raysim
from results.texts import DISTRIBUTION, extra


def test_the_citation_is_of_this_version() -> None:
    citation = YAML(typ="safe").load(ROOT / "CITATION.cff")
    assert citation["version"] == raysim.__version__
    assert citation["license"] == "Apache-2.0"
    assert {"cff-version", "title", "message", "authors"} <= citation.keys()


def test_the_changelog_begins_with_this_version() -> None:
    headings = re.findall(r"^## \[(.+?)\] - (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0][0] == raysim.__version__
    assert all(when == "Unreleased" or re.fullmatch(r"\d{4}-\d\d-\d\d", when) for _, when in headings)


def test_files_that_pages_name_are_there() -> None:
    """A path from the root is; a name alone is in a folder that is named beside it and, where both say so, has what is
    said to be in it, as in "`UPLINKS` in `transforms.py` there"."""
    git = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    listed = {Path(name) for name in git.stdout.split()}
    folders = {folder for name in listed for folder in name.parents}
    pages = [ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    found, wrong = 0, []
    for page in pages:
        for said in re.split(r"\n\n|\n(?=- |\| )", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.S | re.M)):
            named = re.findall(
                r"(?:`(\w+)` (?:in|of) )?`(?:python )?([\w.-]+(?:/[\w.-]*)*)(?: [^`]*)?`", " ".join(said.split())
            )
            paths = [Path(name) for _, name in named if "/" in name and Path(Path(name).parts[0]) in folders]
            places = [path if path in folders else path.parent for path in paths]
            wrong += [f"{page.name}: {path}" for path in paths if path not in listed | folders]
            for what, name in named if places else ():
                if name.endswith(".py"):
                    files = [place / name for place in [Path(), *places] if place / name in listed]
                    if not any(what in (ROOT / file).read_text() for file in files):
                        wrong.append(f"{page.name}: {what} in {name}")
                    found += 1
    assert found > 40 and not wrong


@pytest.mark.parametrize("hook", YAML(typ="safe").load(ROOT / ".pre-commit-config.yaml")["repos"])
def test_a_commit_needs_no_network(hook: dict[str, str]) -> None:
    assert hook["repo"] == "local"


RELEASE = runpy.run_path(str(ROOT / ".ci" / "release"))
WITH_PLACEHOLDERS = {"CITATION.cff", "CODE_OF_CONDUCT.md", "SECURITY.md", "pyproject.toml"}


def test_placeholders_are_filled_by_the_release_and_nowhere_else() -> None:
    """`.ci/release` knows all files that have one; README has links that it makes absolute."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    texts = {name: (ROOT / name).read_bytes() for name in listed if (ROOT / name).is_file()}
    with_one = {name for name, text in texts.items() if b"repository.invalid" in text or b"raysim.invalid" in text}
    assert with_one - {".ci/release", "tests/project/test_published.py"} == WITH_PLACEHOLDERS
    assert set(RELEASE["FILLED"]) == {*WITH_PLACEHOLDERS, "README.md"}
    for name in RELEASE["FILLED"]:
        assert ".invalid" not in RELEASE["filled"]((ROOT / name).read_text(), "https://a.org/b", "c@d.org")
    with pytest.raises(ValueError, match="no placeholder must be left"):
        RELEASE["filled"](RELEASE["ADDRESS"], "https://a.org/b", "c@d.invalid")


def test_published_scenarios_lead_editors_to_their_schema(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "scenarios", tmp_path / "scenarios")
    RELEASE["add_schema"](tmp_path / "scenarios")
    files = [*(tmp_path / "scenarios").rglob("*.yaml")]
    assert len(files) > 60
    for file in files:
        first = file.read_text().partition("\n")[0]
        schema = file.parent / first.removeprefix("# yaml-language-server: $schema=")
        assert schema.resolve() == tmp_path / "scenarios" / "scenario.schema.json"
    assert "algorithm" in json.loads(schema.read_text())["properties"]


def test_links_of_the_published_readme_lead_to_the_repository() -> None:
    found = RELEASE["absolute"]((ROOT / "README.md").read_text(), "https://a.org/b", "1.2.3")
    targets = re.findall(r"\]\(([^)#]+)", found)
    assert all(target.startswith(("https://", "http://")) for target in targets)
    assert "](https://a.org/b/raw/v1.2.3/docs/images/quickstart.svg)" in found
    assert "](https://a.org/b/blob/v1.2.3/CONTRIBUTING.md)" in found


def test_pip_is_told_the_name_of_the_distribution() -> None:
    """`raysim` on the public index is a stranger's."""
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["name"] == DISTRIBUTION
    wrong = re.compile(r"raysim\[|pip install (-U |--upgrade )?['\"]?raysim(?!-fl)\b")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    texts = [name for name in listed if name.endswith((".py", ".md", ".yaml", ".yml", ".toml", ".txt", ".ipynb"))]
    assert not [name for name in texts if (ROOT / name).is_file() and wrong.search((ROOT / name).read_text())]
    assert extra("s3") == "pip install 'raysim-fl[s3]'"


def test_the_forge_calls_what_everybody_calls() -> None:
    jobs = YAML(typ="safe").load(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]
    assert jobs["run"]["steps"][-1] == {"run": "bash .ci/run"}
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    versions = [one.rpartition(" ")[2] for one in classifiers if re.fullmatch(r".* :: 3\.\d+", one)]
    assert jobs["run"]["strategy"]["matrix"]["python"] == versions
