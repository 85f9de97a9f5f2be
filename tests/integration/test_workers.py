"""`multikueue worker` on real servers: the role it makes is enough, and is the one that `rbac worker` prints."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
import yaml
from click.testing import CliRunner

from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER, MULTIKUEUE_CONFIG, SECRET
from multikueue.core.model.names import ObjectKey
from multikueue.sandbox.setting_up import CHECK, KUEUE_NAMESPACE
from multikueued.cli import main
from multikueued.rbac.objects import CLUSTER_ROLE
from tests.integration.fleet import fleet
from tests.integration.planes import Planes
from tests.integration.walking import kubeconfig

pytestmark = [pytest.mark.real, pytest.mark.timeout(240), pytest.mark.asyncio(loop_scope="session")]


async def cli(file: Path, *arguments: str) -> str:
    """What a command says, which must succeed."""
    invoke = partial(CliRunner().invoke, main, ["worker", *arguments, "--kubeconfig", str(file)])
    with anyio.fail_after(100):
        result = await anyio.to_thread.run_sync(invoke, abandon_on_cancel=True)
    assert result.exit_code == 0, result.output
    return result.output


async def test_a_worker_is_added_runs_a_job_is_rotated_and_removed(planes: Planes, tmp_path: Path) -> None:
    """From no account on the worker to none again; the daemon has the chart's permissions and the new token."""
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(kubeconfig(planes, "{}")))
    async with fleet(planes) as real:
        manager, there = real.manager.client, real.workers["worker2"].client
        await manager.merge_patch(MULTIKUEUE_CONFIG, ObjectKey("", CHECK), {"spec": {"clusters": ["worker1"]}})
        await manager.delete(MULTIKUEUE_CLUSTER, ObjectKey("", "worker2"))
        await manager.delete(SECRET, ObjectKey(KUEUE_NAMESPACE, "worker2-secret"))

        said = await cli(
            file, "add", "worker2", "--worker-context", "worker2", "--outside", "--multikueue-config", CHECK
        )
        assert "worker2 is connected" in said
        printed = CliRunner().invoke(main, ["rbac", "worker"]).stdout
        (role,) = [obj for obj in yaml.safe_load_all(printed) if obj["kind"] == "ClusterRole"]
        made = await there.get(CLUSTER_ROLE, ObjectKey("", "kueue-system-multikueue"))
        assert made["rules"] == role["rules"]

        await cli(file, "cordon", "worker1")
        await real.submit("joined")
        assert await real.running("joined") == "worker2"
        said = await cli(file, "rotate", "worker2", "--worker-context", "worker2")
        assert "Secret kueue-system/multikueue-token is deleted" in said
        await real.finish("joined")
        await real.cleaned()
        assert real.ran_on("joined") == ["worker2"]

        await cli(file, "uncordon", "worker1")
        assert "its role and its tokens are deleted" in await cli(
            file, "remove", "worker2", "--worker-context", "worker2"
        )
        await real.submit("left")
        assert await real.running("left") == "worker1"
