"""Finds the programs of real clusters, and says what to do when there are none."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NoReturn

import pytest

from tests.controlplane import binaries
from tests.controlplane.cluster import Cluster
from tests.controlplane.errors import BinariesMissing


def clusters_or_report(environ: Mapping[str, str] = os.environ) -> type[Cluster]:
    """Return what makes clusters. If a program is lacking the test fails in CI and is skipped elsewhere."""
    try:
        binaries.find(environ).controllers_or_raise()
    except BinariesMissing as error:
        report_missing("control plane", error, environ)
    return Cluster


def report_missing(what: str, error: BinariesMissing, environ: Mapping[str, str] = os.environ) -> NoReturn:
    """Fail the test in CI, which must have a real one of these, and skip it elsewhere, with the remedy."""
    if environ.get("CI", "").lower() == "true":
        pytest.fail(f"No real {what}, and CI must have one. {error}", pytrace=False)
    pytest.skip(f"no real {what}. {error}")
