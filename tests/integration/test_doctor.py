"""`multikueue doctor` on real servers: reviews verb by verb, the header Date, what an identity may not see, `--fix`."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
import yaml
from click.testing import CliRunner

from multikueue.core.model.names import Json
from multikueued.cli import main
from tests.integration.fleet import fleet
from tests.integration.planes import Planes
from tests.integration.walking import kubeconfig

pytestmark = [pytest.mark.real, pytest.mark.timeout(240), pytest.mark.asyncio(loop_scope="session")]


async def doctor(file: Path, *arguments: str) -> Json:
    """What it prints for programs."""
    command = ["doctor", "--json", "--kubeconfig", str(file), *arguments]
    invoke = partial(CliRunner().invoke, main, command)
    with anyio.fail_after(100):
        result = await anyio.to_thread.run_sync(invoke, abandon_on_cancel=True)
    assert result.exit_code in (0, 1), result.output
    found: Json = json.loads(result.stdout)
    return found


async def test_workers_are_asked_verb_by_verb_with_what_the_manager_holds(planes: Planes, tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(kubeconfig(planes, "{}")))
    async with fleet(planes):
        found = await doctor(file, "--service-account", "kueue-system/nobody")

    ids = {one["id"] for one in found["findings"]}
    assert "permission-missing" in ids  # of an account that nobody has given anything
    assert not {one for one in ids if one.startswith("worker-")}
    assert [one["worker"] for one in found["workers"]] == ["worker1", "worker2"]
    assert all(one["clockFrom"] <= 0 <= one["clockTo"] for one in found["workers"])  # all run on this machine
    gaps = {one["what"]: one for one in found["notChecked"]}
    assert "namespaces of worker1" in gaps
    assert gaps["namespaces of worker1"]["why"] == "the user of its kubeconfig may not list namespaces there"
