"""Chooses who provides the clusters, and says what to do when nobody can."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import NoReturn

import pytest

from tests.controlplane import binaries
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.errors import BinariesMissing
from tests.controlplane.interface import ClusterFactory
from tests.controlplane.kind import KindCluster

PROCESSES, KIND = "processes", "kind"
OPTION = "--provider"


def add_option(parser: pytest.Parser) -> None:
    """Register `--provider`; for `pytest_addoption` of the topmost conftest."""
    parser.addoption(
        OPTION,
        choices=(PROCESSES, KIND),
        default=PROCESSES,
        help="who provides real clusters: child processes of the tests (default), or kind with Docker",
    )


def choose(name: str, environ: Mapping[str, str] = os.environ) -> ClusterFactory:
    """Return the provider of that name.

    Raises:
        BinariesMissing: it lacks a program; the message says how to get it.
    """
    if name == KIND:
        missing = [
            program for program in ("kind", "docker") if shutil.which(program, path=environ.get("PATH", "")) is None
        ]
        if missing:
            raise BinariesMissing(f"{OPTION} {KIND} needs {' and '.join(missing)} on the PATH: install it.")
        return KindCluster
    binaries.find(environ).controllers_or_raise()
    return ControlPlane


def chosen(config: pytest.Config) -> str:
    """Return the name of the provider that the command line asks for."""
    return str(config.getoption(OPTION, default=PROCESSES))


def choose_or_report(name: str, environ: Mapping[str, str] = os.environ) -> ClusterFactory:
    """Return the provider of that name. If it lacks a program the test fails in CI and is skipped elsewhere."""
    try:
        return choose(name, environ)
    except BinariesMissing as error:
        report_missing("control plane", error, environ)


def report_missing(what: str, error: BinariesMissing, environ: Mapping[str, str] = os.environ) -> NoReturn:
    """Fail the test in CI, which must have a real one of these, and skip it elsewhere, with the remedy."""
    if environ.get("CI", "").lower() == "true":
        pytest.fail(f"No real {what}, and CI must have one. {error}", pytrace=False)
    pytest.skip(f"no real {what}. {error}")
