"""`multikueue doctor` on real servers: reviews verb by verb, the header Date, what an identity may not see, `--fix`."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
import yaml
from click.testing import CliRunner

from multikueue.core.model.names import Json
from multikueue.sandbox.setting_up import KUEUE_NAMESPACE
from multikueued.cli import main
from tests.controlplane.polling import poll_until
from tests.integration.fleet import fleet
from tests.integration.permissions import WEBHOOK, WEBHOOK_CONFIGURATION, chart_objects
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


async def is_nothing(said: Callable[[], Awaitable[str]]) -> bool:
    """Whether there is nothing to say."""
    return not await said()


async def test_what_the_chart_has_made_before_the_daemon_need_not_be_created(planes: Planes, tmp_path: Path) -> None:
    """It was an error, with the advice to grant the daemon the creation of Secrets."""
    file, settings = tmp_path / "kubeconfig", tmp_path / "settings.yaml"
    file.write_text(yaml.safe_dump(kubeconfig(planes, "{}")))
    webhook = {"enabled": True, "configurationName": WEBHOOK_CONFIGURATION, "serviceName": WEBHOOK}
    settings.write_text(yaml.safe_dump({"namespace": KUEUE_NAMESPACE, "webhook": webhook}))
    arguments = ("--service-account", "multikueue/release-multikueued", "--config", str(settings))
    made = [
        *chart_objects("rbac-webhook.yaml"),
        *(obj for obj in chart_objects("webhook.yaml") if obj["kind"] != "Service"),
    ]

    async def lacking() -> str:
        findings = (await doctor(file, *arguments))["findings"]
        return " ".join(finding["why"] for finding in findings if finding["id"] == "permission-missing")

    async with fleet(planes):
        assert "create mutatingwebhookconfigurations" in await lacking()
        for obj in made:
            await planes.manager.admin.apply(obj)
        complete = partial(is_nothing, lacking)
        await poll_until(complete, seconds=30, otherwise="the daemon is said to lack more than the chart grants")


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
