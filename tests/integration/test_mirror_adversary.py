"""A tenant of the manager against mirrors, on a real kube-apiserver: with `edit`, and what else writes pods."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from multikueue.core.model.kinds import NAMESPACE, POD
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.core.model.objects import annotations_of, finalizers_of, is_terminating, uid
from multikueue.errors import NotFound
from multikueue.sandbox.objects import built
from multikueued.mirror_names import MIRROR, WORKER_POD
from multikueued.mirrors.removing import end_mirror
from multikueued.rbac.policies import TAKING
from tests.controlplane.polling import poll_until
from tests.integration.mirror_stage import ATTACKER, AskingKubelets, Stage, as_json, is_open, pod, refused, stage

pytestmark = [pytest.mark.real, pytest.mark.timeout(240), pytest.mark.asyncio(loop_scope="session")]

OUR_NODE: Final = "multikueue-w1"
BUDGET: Final = Resource(GVK("policy", "v1", "PodDisruptionBudget"), "poddisruptionbudgets")
PODS: Final = "/api/v1/namespaces/default/pods"


def binding(name: str, node: str = OUR_NODE, **annotations: str) -> Json:
    """Of a pod to a Node."""
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    metadata = {"name": name, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}


async def test_no_other_way_leads_onto_our_nodes(kubelets: AskingKubelets, tmp_path: Path) -> None:
    """Beside a pod that names the Node: both kinds of bindings, server-side apply, a name that the server makes."""
    async with stage(kubelets, tmp_path, user=ATTACKER) as here:
        said = annotations_of(await here.mirror())
        assert (await here.kubectl("create", "-f", "-", stdin=as_json(pod("free"))))[0] == 0
        for path in (f"{PODS}/free/binding", "/api/v1/namespaces/default/bindings"):
            refusal = await refused(here, binding("free", **said), "create", "--raw", path)
            assert "multikueue alone binds pods to Nodes named multikueue-*" in refusal
        applied = await refused(here, pod("applied", node=OUR_NODE, **said), "apply", "--server-side")
        assert "multikueue alone puts pods" in applied
        generated = pod("", node=OUR_NODE, **said)
        generated["metadata"] = {**generated["metadata"], "generateName": "train-"}
        del generated["metadata"]["name"]
        assert "multikueue alone puts pods" in await refused(here, generated)
        assert (await here.kubectl("get", "pod", "free", "-o", "jsonpath={.spec.nodeName}")) == (0, "")


async def test_nothing_of_a_mirror_is_changed_and_none_is_held(kubelets: AskingKubelets, tmp_path: Path) -> None:
    """With a finalizer a tenant's mirrors would take the places of everybody's, and Nodes would stay."""
    async with stage(kubelets, tmp_path, user=ATTACKER) as here:
        await here.mirror()
        patch = {"metadata": {"annotations": {WORKER_POD: "default/other"}, "finalizers": ["example.com/hold"]}}
        for subresource in ("", "status", "ephemeralcontainers", "resize"):
            through = ["--subresource", subresource] if subresource else []
            await here.kubectl("patch", "pod", "train-x", *through, "-p", json.dumps(patch))
        for through in ([], ["--subresource", "status"]):
            held = json.dumps({"metadata": {"finalizers": ["example.com/hold"]}})
            code, output = await here.kubectl("patch", "pod", "train-x", *through, "-p", held)
            assert (code, "it gets no finalizer" in output) == (1, True), output
        mirror = await here.admin.get(POD, ObjectKey("default", "train-x"))
        assert annotations_of(mirror)[WORKER_POD] == "default/train-x"
        assert "finalizers" not in mirror["metadata"]
        assert await here.kubectl("logs", "train-x") == (0, "one\ntwo\nthree\n")


async def test_a_mirror_that_is_deleted_with_a_grace_is_ended_by_the_daemon(
    kubelets: AskingKubelets, tmp_path: Path
) -> None:
    """It would wait for a kubelet: a deletion without a grace of 0 does not end it any more."""
    async with stage(kubelets, tmp_path, user=ATTACKER) as here:
        mirror = await here.mirror()
        await _done(here, "delete", "pod", "train-x", "--grace-period=600", "--wait=false")
        assert is_terminating(await here.admin.get(POD, ObjectKey.of(mirror)))
        await here.daemon.delete(POD, ObjectKey.of(mirror), uid=uid(mirror), grace=0)
        with pytest.raises(NotFound):
            await here.admin.get(POD, ObjectKey.of(mirror))


async def test_the_proof_of_anothers_mirror_proves_nothing_even_without_the_policy(
    kubelets: AskingKubelets, tmp_path: Path
) -> None:
    """Whoever reads another namespace's mirrors, and writes all that they say on their own, or on a pod of theirs."""
    async with stage(kubelets, tmp_path, user=ATTACKER, exec=True) as here:
        said = annotations_of(await here.mirror())
        await here.mirror("mine")
        await here.admin.delete(TAKING, ObjectKey("", "multikueue-mirrors"))
        await poll_until(lambda: is_open(here), seconds=60, otherwise="the policy is still in force")
        await here.admin.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}})
        account = {"namespace": "mine", "name": "default"}
        await here.manager.admin.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
        elsewhere = pod("train-x", node=OUR_NODE, **said)
        elsewhere["metadata"]["namespace"] = "mine"
        await _done(here, "create", "-f", "-", stdin=as_json(elsewhere))
        await _done(here, "patch", "pod", "mine", "-p", json.dumps({"metadata": {"annotations": said}}))
        await _done(here, "create", "-f", "-", stdin=as_json(pod("bound")))
        path = "/api/v1/namespaces/default/bindings"
        await _done(here, "create", "--raw", path, "-f", "-", stdin=as_json(binding("bound", **said)))
        for name, namespace in (("mine", "default"), ("bound", "default"), ("train-x", "mine")):
            for command in (["logs", name], ["exec", name, "--", "true"]):
                code, output = await here.kubectl("-n", namespace, *command)
                assert (code, f"multikueue does not show a pod {namespace}/{name}" in output) == (1, True), output
        assert here.worker.streams() == []


async def _done(here: Stage, *arguments: str, stdin: bytes = b"") -> None:
    code, output = await here.kubectl(*arguments, stdin=stdin)
    assert code == 0, output


async def test_a_mirror_waits_for_nothing_that_a_tenant_has_it_own(kubelets: AskingKubelets, tmp_path: Path) -> None:
    """A deletion in the foreground, or one that makes orphans, is a finalizer that the policy does not see: what the
    mirror owns may have one of the tenant's, and is never gone. The daemon's own deletion takes it back."""
    async with stage(kubelets, tmp_path, user=ATTACKER) as here:
        for cascade, finalizer in (("foreground", "foregroundDeletion"), ("orphan", "orphan")):
            mirror = await here.mirror()
            await _done(here, "delete", "pod", "train-x", f"--cascade={cascade}", "--wait=false")
            held = await here.admin.get(POD, ObjectKey.of(mirror))
            assert finalizers_of(held) == [finalizer]
            await end_mirror(here.daemon, held)
            with pytest.raises(NotFound):
                await here.admin.get(POD, ObjectKey.of(mirror))


async def test_nobody_has_a_mirror_belong_to_something_else(kubelets: AskingKubelets, tmp_path: Path) -> None:
    """It would not go with its job, and would not count among those of it."""
    async with stage(kubelets, tmp_path, user=ATTACKER) as here:
        mirror = await here.mirror()
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "mine", "uid": "mine"}
        patch = json.dumps({"metadata": {"ownerReferences": [owner]}})
        code, output = await here.kubectl("patch", "pod", "train-x", "-p", patch)
        assert (code, "it gets no other owner" in output) == (1, True), output
        await here.kubectl("patch", "pod", "train-x", "--subresource", "status", "-p", patch)
        assert "ownerReferences" not in (await here.admin.get(POD, ObjectKey.of(mirror)))["metadata"]


async def test_an_eviction_is_a_deletion_and_no_budget_keeps_what_the_daemon_takes_away(
    kubelets: AskingKubelets, tmp_path: Path
) -> None:
    """A tenant may make budgets, and their selectors find mirrors, too."""
    evict = ("create", "--raw", f"{PODS}/train-x/eviction")
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"namespace": "default", "name": "train-x"}}
    async with stage(kubelets, tmp_path, user=ATTACKER) as here:
        mirror = await here.mirror()
        await _done(here, *evict, "-f", "-", stdin=as_json(eviction))
        with pytest.raises(NotFound):
            await here.admin.get(POD, ObjectKey.of(mirror))
        mirror = await here.mirror()
        spec = {"minAvailable": 1, "selector": {"matchLabels": {MIRROR: "multikueue"}}}
        budget = await here.admin.create(BUDGET, built(BUDGET, "mine", "default", spec=spec))
        none = {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 1, "expectedPods": 1}
        status = {"status": {**none, "observedGeneration": 1}}  # as its controller, which does not run here
        try:
            await here.admin.merge_patch(BUDGET, ObjectKey.of(budget), status, subresource="status")
            assert "disruption budget" in await refused(here, eviction, *evict)
            await end_mirror(here.daemon, mirror)
            with pytest.raises(NotFound):
                await here.admin.get(POD, ObjectKey.of(mirror))
        finally:
            await here.admin.delete(BUDGET, ObjectKey.of(budget))


async def test_a_container_that_would_never_start_is_refused_with_words(
    kubelets: AskingKubelets, tmp_path: Path
) -> None:
    """`kubectl debug` would wait for it without end. (`resize` the API server itself refuses there.)"""
    async with stage(kubelets, tmp_path, user=ATTACKER) as here:
        await here.mirror()
        code, output = await here.kubectl("debug", "train-x", "-it", "--image=busybox", "--target=main")
        assert (code, "this pod is a view of one on a worker" in output) == (1, True), output
        code, output = await here.kubectl("debug", "node/multikueue-w1", "-it", "--image=busybox", user="admin")
        assert (code, "multikueue alone puts pods on Nodes" in output) == (1, True), output


async def test_what_a_mirror_says_of_its_run_stays(kubelets: AskingKubelets, tmp_path: Path) -> None:
    """Whoever looks for what runs, or for whom, would read what the tenant wants. Labels of their own are theirs."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "its-uid", "controller": True}
    async with stage(kubelets, tmp_path, user=ATTACKER) as here:
        made = pod("train-x", node=OUR_NODE)
        made["metadata"]["ownerReferences"] = [owner]
        await here.daemon.create(POD, made)
        image = {"spec": {"containers": [{"name": "main", "image": "harmless"}]}}
        other = {"metadata": {"ownerReferences": [{**owner, "kind": "Nothing"}]}}
        for how, patch, words in (
            ("strategic", image, "what multikueue has written on this pod stays"),
            ("strategic", {"spec": {"activeDeadlineSeconds": 1}}, "what multikueue has written on this pod stays"),
            ("merge", other, "it gets no other owner"),
        ):
            code, output = await here.kubectl("patch", "pod", "train-x", f"--type={how}", "-p", json.dumps(patch))
            assert (code, words in output) == (1, True), output
        await _done(here, "label", "pod", "train-x", "already_checked=True")
        await _done(here, "annotate", "pod", "train-x", "example.com/read=yes")


async def test_nobody_resizes_a_mirror(kubelets: AskingKubelets, tmp_path: Path) -> None:
    """What its containers ask for is what multikueue wrote. More than a Node of ours has, which is nothing, the API
    server itself refuses; less it does not."""
    async with stage(kubelets, tmp_path, user=ATTACKER) as here:
        made = pod("train-x", node=OUR_NODE)
        made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}
        await here.daemon.create(POD, made)
        smaller = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "0"}}}]}}
        code, output = await here.kubectl("patch", "pod", "train-x", "--subresource=resize", "-p", json.dumps(smaller))
        assert (code, "what multikueue has written on this pod stays" in output) == (1, True), output
