"""The public surface: what `import multikueue` gives, and what it does not import."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest

import multikueue
from multikueue import adapters, errors, protocols, testing


def _lazy_names() -> dict[str, str]:
    """The names that type checkers see and that are imported on first use, with the module each is from."""
    tree = ast.parse(Path(multikueue.__file__).read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    imports = (node for node in block.body if isinstance(node, ast.ImportFrom))
    return {name.name: str(node.module) for node in imports for name in node.names}


def test_all_is_sorted_and_complete() -> None:
    """A name somebody may rely on is in `__all__`; everything else may change."""
    imported = {
        name
        for name, value in vars(multikueue).items()
        if not name.startswith("_")
        and not inspect.ismodule(value)
        and name not in ("annotations", "TYPE_CHECKING", "Any")
    }

    assert set(multikueue.__all__) == imported | set(_lazy_names())
    assert multikueue.__all__ == sorted(multikueue.__all__, key=ruffs_order)


def test_every_error_and_every_seam_is_public() -> None:
    raised = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
    seams = {name for name, value in vars(protocols).items() if getattr(value, "_is_protocol", False)} - {"Protocol"}

    assert raised | seams <= set(multikueue.__all__)


@pytest.mark.parametrize("name", multikueue.__all__)
def test_a_name_is_what_type_checkers_take_it_for(name: str) -> None:
    """Also one that is imported on first use."""
    module = _lazy_names().get(name, "multikueue")

    assert getattr(multikueue, name) is getattr(importlib.import_module(module), name)
    assert name in dir(multikueue)


def _named_in(annotation: object) -> set[str]:
    return set(re.findall(r"[A-Z]\w+", annotation)) if isinstance(annotation, str) else set()


@pytest.mark.parametrize(
    "written",
    [
        getattr(adapters, name)
        for name in adapters.__all__
        if attrs.has(getattr(adapters, name)) and name != "SafeAdapter"
    ]
    + [multikueue.Nomination, multikueue.NotTaken, multikueue.Part, multikueue.Dispatcher, multikueue.Figures]
    + [value for name, value in vars(protocols).items() if name.endswith("Hook")],
)
def test_what_somebody_writes_is_made_of_public_names(written: type[Any]) -> None:
    """A row could not say where pod templates are, nor a dispatcher that nobody took it."""
    public = {*multikueue.__all__, *adapters.__all__, "Declaration"}
    fields = attrs.fields(written) if attrs.has(written) else ()
    named = {name for field in fields if field.init for name in _named_in(field.type)}
    if not fields:
        methods = (value for value in vars(written).values() if inspect.isfunction(value))
        named = {name for method in methods for kind in method.__annotations__.values() for name in _named_in(kind)}
    ours = {name for name in named if vars(sys.modules[written.__module__]).get(name) is not None}
    internal = {
        name
        for name in ours - public
        if getattr(getattr(sys.modules[written.__module__], name), "__module__", "").startswith("multikueue")
    }
    assert internal == set()


def test_help_of_the_manager_explains_what_it_is_given() -> None:
    explained = re.findall(r"^ {4}(\w+): ", inspect.getdoc(multikueue.Manager) or "", re.MULTILINE)

    assert explained == list(inspect.signature(multikueue.Manager).parameters)


@pytest.mark.parametrize(
    "public",
    [
        pytest.param(public, id=name)
        for package in (multikueue, testing)
        for name in package.__all__
        if attrs.has(public := getattr(package, name)) and isinstance(public, type)
    ],
)
def test_help_of_a_class_explains_its_fields(public: type[Any]) -> None:
    """As it stands below them in the source: `help(Candidate)` showed no field."""
    help_text = inspect.getdoc(public) or ""
    fields = [field for field in attrs.fields(public) if field.init and not field.name.startswith("_")]
    missing = [field.name for field in fields if not re.search(rf"^ *{field.name}: \S", help_text, re.MULTILINE)]
    assert missing == []


def test_lazy_names_can_be_imported_all_at_once() -> None:
    program = "from multikueue import *; print(Manager, KubeClient, JobKind, ClusterPool)"
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, capture_output=True, timeout=20)


def test_the_version_is_the_installed_one() -> None:
    assert multikueue.__version__ == importlib.metadata.version("multikueue")


@pytest.mark.parametrize("name", ["nonsense", "WorkerPool"])
def test_a_name_that_is_not_there_is_an_attribute_error(name: str) -> None:
    with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
        getattr(multikueue, name)


@pytest.mark.parametrize(
    ("imported", "unwanted"),
    [
        (
            "multikueue",
            (
                *("multikueue.sandbox", "multikueue.runtime", "multikueue.kube", "multikueue.adapters", "multikueued"),
                *("kubernetes_asyncio", "aiohttp", "anyio", "structlog"),
            ),
        ),
        ("multikueue.adapters", ("cel", "jsonpatch")),
        ("multikueue.runtime.manager", ("multikueue.sandbox", "multikueued", "kubernetes_asyncio")),
        ("multikueued.cli", ("multikueue.kube", "multikueue.runtime", "aiohttp", "anyio")),
        ("multikueued.run.command", ("multikueue.sandbox", "multikueued.demo", "kubernetes_asyncio", "cryptography")),
    ],
)
def test_an_import_brings_only_what_it_needs(imported: str, unwanted: tuple[str, ...]) -> None:
    """The sandbox is for tests and the demo; kubernetes-asyncio costs 0.3 s and 65 MiB, CEL 0.3 s."""
    program = f"import sys, {imported}; print(*(name for name in {unwanted!r} if name in sys.modules))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=20)

    assert result.stdout.strip() == ""


def ruffs_order(name: str) -> tuple[int, str]:
    """Constants, then classes, then functions, each by name: what ruff's RUF022 keeps `__all__` in."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)
