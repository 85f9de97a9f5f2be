"""Two daemons at once, processes of their own with one Lease: one of them is paused, and comes back."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest

from multikueue.core.model.kinds import JOB, POD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig, uid
from multikueue.kube import Informer
from multikueue.protocols import ApiClient
from multikueue.sandbox import Sandbox
from multikueue.testing import job, until
from multikueued.mirror_names import MIRROR, PROOF, WORKER_POD_UID
from multikueued.rbac.mirrors import mirror_policy_objects
from multikueued.rbac.policies import POLICY, TAKING
from multikueued.settings.config import Settings
from tests.daemon.test_running import daemon
from tests.mirrors.test_daemon import RUNNING


@attrs.define(eq=False)
class History:
    """All mirrors that there ever were."""

    admin: ApiClient
    made: dict[str, str] = attrs.field(factory=dict)
    """By their UID, that of the pod that they show."""
    gone: list[str] = attrs.field(factory=list)

    def note(self, _key: ObjectKey, old: Json | None, new: Json | None) -> None:
        """A mirror has changed."""
        if new is not None:
            self.made[uid(new)] = annotations_of(new)[WORKER_POD_UID]
        elif old is not None:
            self.gone.append(uid(old))

    async def shown(self) -> dict[str, str]:
        """By job, the UID of its mirror, of those that are proven and say that their pod runs."""
        mirrors = (await self.admin.list(POD, label_selector=MIRROR)).items
        return {
            mirror["metadata"]["labels"]["batch.kubernetes.io/job-name"]: uid(mirror)
            for mirror in mirrors
            if annotations_of(mirror).get(PROOF) and dig(mirror, "status", "phase") == "Running"
        }


@pytest.mark.gate
async def test_one_takes_over_while_the_other_is_paused_and_back_again(tmp_path: Path) -> None:
    """No pod is mirrored twice, and no mirror goes but that of the job that is deleted."""
    folders = [tmp_path / name for name in ("first", "second")]
    for folder in folders:
        folder.mkdir()
    settings: dict[str, Any] = {
        "leaderElection": {"leaseDuration": "3s", "renewDeadline": "2s"},
        "mirrorPods": {"logs": True, "address": "127.0.0.1"},
    }
    async with Sandbox(workers=1, options=RUNNING) as sandbox, anyio.create_task_group() as tasks:
        admin = sandbox.manager.client("admin")
        for resource, obj in zip(
            (POLICY, TAKING), mirror_policy_objects(Settings().mirrors_policy, "multikueue"), strict=True
        ):
            await admin.create(resource, obj)
        history = History(admin)
        informer = Informer(admin, POD, label_selector=MIRROR, on_change=history.note)
        tasks.start_soon(informer.run)
        await informer.wait_synced()
        kubeconfig = sandbox.manager.server.kubeconfig("multikueue")

        async def are_shown(*jobs: str) -> bool:
            return (await history.shown()).keys() == {*jobs}

        async with daemon(folders[0], kubeconfig, **settings) as first:
            await first.logged("leading")
            async with daemon(folders[1], kubeconfig, **settings) as second:
                await second.logged("serving")
                for name in ("stays", "goes"):
                    await admin.create(JOB, job(name))
                await until(lambda: are_shown("stays", "goes"), 25)
                before = await history.shown()

                first.process.send_signal(signal.SIGSTOP)
                await second.logged("leading")
                await admin.create(JOB, job("comes"))
                await admin.delete(JOB, ObjectKey("default", "goes"), propagation="Background")
                await until(lambda: are_shown("stays", "comes"), 25)

                first.process.send_signal(signal.SIGCONT)
                await first.logged("leadership lost")
                await admin.create(JOB, job("later"))
                await until(lambda: are_shown("stays", "comes", "later"), 25)
                second.process.send_signal(signal.SIGTERM)
                await second.process.wait()
            await admin.create(JOB, job("last"))
            await until(lambda: are_shown("stays", "comes", "later", "last"), 25)
            after = await history.shown()
        tasks.cancel_scope.cancel()
    assert after["stays"] == before["stays"]
    assert [key for key, count in Counter(history.made.values()).items() if count > 1] == []
    assert history.gone == [before["goes"]]
