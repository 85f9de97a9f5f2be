"""What the code imports and what `pip install` brings are the same."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
OURS = {"multikueue", "multikueued"}
_HASH: Final = re.compile(r"--hash=sha256:[0-9a-f]{64}")


def test_every_import_is_a_declared_dependency_and_every_dependency_is_imported() -> None:
    """One that another dependency happens to bring may be gone with its next release."""
    distributions = importlib.metadata.packages_distributions()
    packages = {name for folder in OURS for name in _imported(_folder(folder))} - OURS - set(sys.stdlib_module_names)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {_normal(re.split(r"[^\w.-]", wanted)[0]) for wanted in project["dependencies"]}

    assert {_normal(distributions[name][0]) for name in packages} == declared


def test_every_dependency_says_why_it_is_there() -> None:
    lines = (ROOT / "pyproject.toml").read_text().partition("\ndependencies = [\n")[2].partition("\n]\n")[0]

    assert [line for line in lines.splitlines() if not re.search(r"\",\s+# \w", line)] == []


def test_the_pythons_that_are_claimed_are_those_the_tests_run_on() -> None:
    """A classifier, the README, and what nox looks for say the same; later ones are tried where they are installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    prefix = "Programming Language :: Python :: "
    claimed = [entry.removeprefix(prefix) for entry in project["classifiers"] if entry.startswith(f"{prefix}3.")]
    looked_for = re.search(r"^VERSIONS = \((.*)\)$", (ROOT / "noxfile.py").read_text(), re.MULTILINE)

    assert looked_for
    assert re.findall(r"[\d.]+", looked_for[1])[: len(claimed)] == claimed
    assert project["requires-python"] == f">={claimed[0]}"
    assert f"tested on Python {', '.join(claimed[:-1])} and {claimed[-1]}" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-build.lock"])
def test_the_locks_of_the_image_have_what_the_project_asks_for(lock: str) -> None:
    """With versions that may be, each with hashes. What these need in turn is there, or pip refuses to install them."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project, build = config["project"], config["build-system"]["requires"]
    assert config["dependency-groups"]["build"] == build
    runs = [*project["dependencies"], *project["optional-dependencies"]["uvloop"]]
    text = (ROOT / lock).read_text().replace(" \\\n", " ")
    entries = [line.split() for line in text.splitlines() if not line.startswith("#")]
    assert [name for name, *hashes in entries if not all(map(_HASH.fullmatch, hashes)) or not hashes] == []
    locked = {_normal(name): version for name, version in (entry[0].split("==") for entry in entries)}
    wanted = [Requirement(text) for text in (build if "build" in lock else runs)]
    assert [
        requirement
        for requirement in wanted
        if not requirement.specifier.contains(locked.get(_normal(requirement.name), "0"))
    ] == []


def test_the_image_is_made_of_what_is_named_by_hash() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    assert {line.split()[1] for line in lines if line.startswith("FROM ")} == {"${PYTHON_IMAGE}"}
    assert [line for line in lines if line.startswith("ARG ")] == ["ARG PYTHON_IMAGE"] * 2, "without a default"
    installs = [line for line in lines if re.search(r"pip (install|wheel)", line)]
    assert len(installs) == 4
    assert [line for line in installs if "--require-hashes" not in line and "--no-deps" not in line] == []


def _folder(package: str) -> Path:
    return ROOT / ("daemon/multikueued" if package == "multikueued" else package)


def _imported(folder: Path) -> Iterator[str]:
    """The top-level packages that the modules of a folder import."""
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.module.partition(".")[0]


def _normal(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()
