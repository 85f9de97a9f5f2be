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
    report: Json = json.loads(result.stdout)
    return report


async def test_workers_are_asked_verb_by_verb_with_what_the_manager_holds(planes: Planes, tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(kubeconfig(planes, "{}")))
    async with fleet(planes):
        diagnosis = await doctor(file, "--service-account", "kueue-system/nobody")

    ids = {finding["id"] for finding in diagnosis["findings"]}
    assert "permission-missing" in ids  # of an account that nobody has given anything
    assert not {finding_id for finding_id in ids if finding_id.startswith("worker-")}
    assert [worker["worker"] for worker in diagnosis["workers"]] == ["worker1", "worker2"]
    assert all(
        worker["clockFrom"] <= 0 <= worker["clockTo"] for worker in diagnosis["workers"]
    )  # all run on this machine
    gaps = {gap["what"]: gap for gap in diagnosis["notChecked"]}
    assert "namespaces of worker1" in gaps
    assert gaps["namespaces of worker1"]["why"] == "the user of its kubeconfig may not list namespaces there"
