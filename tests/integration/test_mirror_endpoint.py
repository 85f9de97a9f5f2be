"""The endpoint behind a real kube-apiserver, asked by kubectl: it is the kubelet of our Nodes.

The worker is played: a real API server has logs from kubelets alone.
"""

from __future__ import annotations

import base64
import json
import re
import ssl
from datetime import timedelta
from pathlib import Path

import aiohttp
import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes

from multikueue.core.model.kinds import LEASE, POD
from multikueue.core.model.labels import OWN_PREFIX
from multikueue.core.model.names import Json, ObjectKey
from multikueue.errors import ApiError
from multikueue.kube import KubeClient
from multikueue.runtime.loop import utc_now
from multikueue.webhook.certificates import ServerKeyPair, make_authority, pem
from multikueued.diagnosis.checks.mirrors import WAY_RULES
from multikueued.diagnosis.facts import Facts, MirrorFacts, MirrorWay
from multikueued.doctor.cluster_reader import Sight
from multikueued.doctor.manager_reader import mirrors_of
from multikueued.mirror_names import MIRROR, PROOF, WORKER_POD, WORKER_POD_UID
from multikueued.rbac.mirrors import (
    mirrored_rules,
)
from multikueued.rbac.policies import TAKING
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.remedies.trouble import known_by
from multikueued.settings.config import Settings
from multikueued.settings.sections import MirrorPodSettings
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.polling import poll_until
from tests.controlplane.ports import free_port
from tests.integration.mirror_stage import (
    KUBELET_CLIENT,
    NAMESPACE,
    NODE,
    AskingKubelets,
    Stage,
    as_json,
    asking,
    is_open,
    lease,
    node,
    pod,
    refused,
    stage,
)
from tests.integration.planes import connection
from tests.mirrors.endpoint.worker import TOKEN

pytestmark = [pytest.mark.real, pytest.mark.timeout(240), pytest.mark.asyncio(loop_scope="session")]


async def test_kubectl_reads_logs_and_enters_containers(kubelets: AskingKubelets, tmp_path: Path) -> None:
    async with stage(kubelets, tmp_path, exec=True) as here:
        await here.mirror()
        assert await here.kubectl("logs", "train-x") == (0, "one\ntwo\nthree\n")
        assert await here.kubectl("logs", "train-x", "-c", "main", "--tail=2", "--timestamps", "--limit-bytes=10") == (
            0,
            "one\ntwo\nthree\n",
        )
        asked = here.worker.streams()[-1]
        assert dict(asked.query) == {"container": "main", "tailLines": "2", "timestamps": "true", "limitBytes": "10"}
        here.worker.refusal = 400, 'container "main" in pod "train-x" is waiting to start: ContainerCreating'
        code, output = await here.kubectl("logs", "train-x")
        assert (code, "is waiting to start: ContainerCreating" in output) == (1, True), output
        here.worker.refusal = None
        for protocol in ("true", "false"):
            env = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": protocol}
            assert await here.kubectl("exec", "train-x", "--", "true", env=env) == (0, "ready\n")
            code, output = await here.kubectl("exec", "-i", "train-x", "--", "tr", stdin=b"hello\n", env=env)
            assert (code, output) == (0, "ready\nHELLO\n")
            here.worker.code = 3
            code, output = await here.kubectl("exec", "train-x", "--", "false", env=env)
            assert (code, output) == (3, "ready\ncommand terminated with exit code 3\n")
            here.worker.code = 0
        assert here.worker.streams()[-1].query.getall("command") == ["false"]
        assert await here.kubectl("get", "--raw", "/api/v1/nodes/multikueue-w1/proxy/healthz", user="prober") == (
            0,
            '{"ok":"multikueue answers for the pods of its nodes"}\n',
        )


async def test_nobody_but_the_daemon_puts_pods_on_its_nodes_or_changes_what_it_wrote_there(
    kubelets: AskingKubelets, tmp_path: Path
) -> None:
    async with stage(kubelets, tmp_path) as here:
        mirror = await here.mirror()
        said = mirror["metadata"]["annotations"]
        for user in ("tenant", "admin"):
            output = await refused(here, pod("mine", node="multikueue-w1", **said), user=user)
            assert "multikueue alone puts pods on Nodes named multikueue-*" in output
        free = pod("free")
        assert (await here.kubectl("create", "-f", "-", stdin=as_json(free)))[0] == 0
        target = {"apiVersion": "v1", "kind": "Node", "name": "multikueue-w1"}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "free"}, "target": target}
        path = "/api/v1/namespaces/default/pods/free/binding"
        assert "multikueue alone binds pods" in await refused(here, binding, "create", "--raw", path)
        for patch in (
            {"annotations": {WORKER_POD: "default/other"}},
            {"annotations": {PROOF: None}},
            {"annotations": {f"{OWN_PREFIX}more": "x"}},
            {"labels": {MIRROR: None}},
        ):
            code, output = await here.kubectl("patch", "pod", "train-x", "-p", json.dumps({"metadata": patch}))
            assert (code, "stays as it is" in output) == (1, True), output
        assert (await here.kubectl("label", "pod", "train-x", "seen=yes"))[0] == 0
        assert (await here.kubectl("delete", "pod", "train-x"))[0] == 0


async def test_the_daemons_account_writes_pods_nodes_and_leases_of_its_own_alone(
    kubelets: AskingKubelets, tmp_path: Path
) -> None:
    async with stage(kubelets, tmp_path) as here:
        other = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "real-1"}}
        await here.admin.create(NODE, other)
        await here.admin.create(POD, pod("real", node="real-1"))
        await here.admin.create(POD, pod("gated"))
        refusals = [
            (here.daemon.create(POD, pod("a", node="real-1")), "makes pods on Nodes named multikueue-* only"),
            (here.daemon.create(POD, pod("a")), "makes pods on Nodes named multikueue-* only"),
            (here.daemon.delete(POD, ObjectKey("default", "real")), "changes and deletes pods"),
            (here.daemon.delete(NODE, ObjectKey("", "real-1")), "writes Nodes named multikueue-* only"),
            (
                here.daemon.merge_patch(NODE, ObjectKey("", "real-1"), {"status": {}}, subresource="status"),
                "writes Nodes named multikueue-* only",
            ),
            (here.daemon.create(NODE, node("real-2")), "writes Nodes named multikueue-* only"),
            (here.daemon.create(LEASE, lease("real-1")), "writes Leases of Nodes named multikueue-* only"),
        ]
        for attempt, words in refusals:
            with pytest.raises(ApiError, match=re.escape(words)):
                await attempt
        await here.daemon.create(LEASE, lease("multikueue-w1"))
        await here.daemon.delete(POD, ObjectKey("default", "gated"), grace=0)
        mirror = await here.mirror()
        await here.daemon.delete(POD, ObjectKey.of(mirror), grace=0)
        await here.daemon.delete(NODE, ObjectKey("", "multikueue-w1"))


async def test_a_pod_in_place_of_a_mirror_gets_nothing_even_without_the_policy(
    kubelets: AskingKubelets, tmp_path: Path
) -> None:
    async with stage(kubelets, tmp_path, exec=True) as here:
        mirror = await here.mirror()
        await here.admin.delete(TAKING, ObjectKey("", "multikueue-mirrors"))
        await poll_until(lambda: is_open(here), seconds=60, otherwise="the policy is still in force")
        said = mirror["metadata"]["annotations"]
        await here.kubectl("delete", "pod", "train-x")
        forged = pod("train-x", node="multikueue-w1", **said)
        assert (await here.kubectl("create", "-f", "-", stdin=as_json(forged)))[0] == 0
        for command in (("logs", "train-x"), ("exec", "train-x", "--", "true")):
            code, output = await here.kubectl(*command)
            assert (code, "multikueue does not show a pod default/train-x" in output) == (1, True), output
        changed = await here.mirror("other")
        assert (await here.kubectl("logs", "other"))[0] == 0
        for name in ("uid-of-another", ""):
            patch = {"metadata": {"annotations": {WORKER_POD_UID: name}}}
            await here.kubectl("patch", "pod", "other", "-p", json.dumps(patch))
            assert (await here.kubectl("logs", "other"))[0] == 1
        del changed
        assert [stream.path for stream in here.worker.streams()] == ["/api/v1/namespaces/default/pods/other/log"]


async def test_another_pod_of_the_same_name_on_the_worker_is_not_shown(
    kubelets: AskingKubelets, tmp_path: Path
) -> None:
    async with stage(kubelets, tmp_path, exec=True) as here:
        await here.mirror()
        here.worker.on_open = [("default/train-x", "uid-of-another")]  # between the look at it and the stream
        for command in (("logs", "train-x"), ("exec", "train-x", "--", "true")):
            code, output = await here.kubectl(*command)
            assert (code, 'gone from worker cluster "w1"' in output) == (1, True), output
            here.worker.on_open = []
        assert len(here.worker.streams()) == 1  # exec did not reach a container of it


async def test_without_the_second_switch_nobody_enters(kubelets: AskingKubelets, tmp_path: Path) -> None:
    async with stage(kubelets, tmp_path) as here:
        await here.mirror()
        code, output = await here.kubectl("exec", "train-x", "--", "true")
        assert (code, "mirrorPods.exec is off" in output) == (1, True), output
        code, output = await here.kubectl("port-forward", "train-x", "0:80")
        assert here.worker.streams() == []


async def test_who_may_ask_the_port_itself(kubelets: AskingKubelets, tmp_path: Path) -> None:
    async with stage(kubelets, tmp_path, exec=True) as here:
        await here.mirror()
        logs = "/containerLogs/default/train-x/main"
        assert (await here.ask(logs, KUBELET_CLIENT)) == (200, "one\ntwo\nthree\n")
        for name in ("tenant", "system:node:other"):
            assert (await here.ask(logs, name))[0] == 403
            assert (await here.ask("/healthz", name))[0] == 403
        assert (await here.ask(logs, "prober"))[0] == 200  # who may get nodes/proxy of this Node
        upgrade = {"Upgrade": "websocket", "Connection": "Upgrade"}
        entering = "/exec/default/train-x/main?command=sh&output=1"
        assert (await here.ask(entering, "prober", upgrade))[0] == 403  # `get` is not enough to enter
        assert (await here.ask(logs, KUBELET_CLIENT, {"Authorization": "Bearer x"}))[0] == 401
        for path in ("/run/default/train-x/main", "/pods", "/stats/summary", "/metrics", "/configz", "/logs/", "/"):
            assert (await here.ask(path, KUBELET_CLIENT))[0] == 404
        for nobody in (None, trustme.CA()):
            with pytest.raises((aiohttp.ClientError, ConnectionError)):
                await here.ask(logs, KUBELET_CLIENT, authority=nobody)


class TestTheDoctorTriesTheWay:
    async def test_and_tells_that_nobody_listens(self, kubelets: AskingKubelets, tmp_path: Path) -> None:
        async with stage(kubelets, tmp_path) as here:
            assert await tried(here) == ("", "")
            status = {"status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": free_port()}}}}
            await here.daemon.merge_patch(NODE, ObjectKey("", "multikueue-w1"), status, subresource="status")
            said, found = await tried(here)
            assert found == "mirror-address", said
            await here.admin.delete(NODE, ObjectKey("", "multikueue-w1"))
            facts = await mirrors_of(Sight(here.admin, "the manager", ""), fleet_with_mirrors())
            assert facts == MirrorFacts(True, MirrorWay("multikueue-w1", is_missing=True))

    async def test_and_tells_of_a_certificate_that_is_not_accepted(
        self, kubelets: AskingKubelets, tmp_path: Path
    ) -> None:
        other = tmp_path / "other.pem"
        trustme.CA().cert_pem.write_to_path(other)
        authority = f"--kubelet-certificate-authority={other}"
        async with asking(tmp_path, authority) as checking, stage(checking, tmp_path) as here:
            said, found = await tried(here)
            assert found == "mirror-certificate", said

    async def test_and_tells_of_an_api_server_that_does_not_show_itself(
        self, kubelets: AskingKubelets, tmp_path: Path
    ) -> None:
        async with asking(tmp_path, shows_itself=False) as silent, stage(silent, tmp_path) as here:
            said, found = await tried(here)
            assert found == "mirror-client-certificate", said

    async def test_and_who_may_not_is_told_that_it_was_not_checked(
        self, kubelets: AskingKubelets, tmp_path: Path
    ) -> None:
        async with stage(kubelets, tmp_path) as here:
            async with KubeClient(connection(here.manager.kubeconfig("tenant")), name="manager") as client:
                sight = Sight(client, "the manager", "ask somebody")
                assert await mirrors_of(sight, fleet_with_mirrors()) == MirrorFacts()
            assert [gap.why for gap in sight.not_checked][-1] == "you may not get nodes/proxy of multikueue-w1"


def fleet_with_mirrors() -> Facts:
    """What the doctor knows of the stage."""
    clusters = ({"metadata": {"name": "w1"}},)
    settings = Settings(namespace=NAMESPACE, mirror_pods=MirrorPodSettings(logs=True))
    return Facts(
        utc_now(), ManagerObjects(clusters=clusters, daemon_namespace=NAMESPACE), settings, settings_known=True
    )


async def tried(here: Stage) -> tuple[str, str]:
    """What the API server says on the way to the endpoint, and the id of what the doctor takes it for."""
    async with KubeClient(connection(here.manager.kubeconfig("prober")), name="manager") as client:
        facts = await mirrors_of(Sight(client, "the manager", ""), fleet_with_mirrors())
    assert facts is not None
    assert facts.way is not None
    known = known_by(WAY_RULES, facts.way.said)
    return facts.way.said, known[0].id if known is not None else ""


async def test_older_websockets_enter_as_they_are(kubelets: AskingKubelets, tmp_path: Path) -> None:
    """As the Python client speaks, and so Airflow: API servers pass them on untranslated, as GET."""
    async with stage(kubelets, tmp_path, exec=True) as here:
        await here.mirror()
        assert await capitals_of(here, b"hello") == b"HELLO"
        (asked,) = here.worker.streams()
        assert (asked.method, asked.headers.getall("Authorization")) == ("GET", [f"Bearer {TOKEN}"])


async def test_a_real_worker_takes_what_is_passed_on_with_the_rights_that_are_printed(
    kubelets: AskingKubelets, tmp_path: Path
) -> None:
    """Of the worker its kubelet alone is played."""
    worker = ControlPlane("worker", users={"logs": mirrored_rules(exec=True), "less": mirrored_rules(exec=False)})
    async with worker, stage(kubelets, tmp_path, exec=True) as here:
        account = {"namespace": "default", "name": "default"}
        await worker.admin.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
        await worker.admin.create(node("real-1"))
        ports = {"kubeletEndpoint": {"Port": here.worker.port}}
        addresses = [{"type": "InternalIP", "address": here.address}]
        status = {"status": {"addresses": addresses, "daemonEndpoints": ports}}
        await worker.admin.merge_patch("/api/v1/nodes/real-1/status", status)
        there = await worker.admin.create(pod("train-x", node="real-1"))
        here.workers.configs["w1"] = connection(worker.kubeconfig("logs"))
        await here.mirror(pod_uid=there["metadata"]["uid"])
        assert await here.kubectl("logs", "train-x", "--tail=3") == (0, "one\ntwo\nthree\n")
        for protocol in ("true", "false"):
            env = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": protocol}
            entered = await here.kubectl("exec", "-i", "train-x", "--", "tr", stdin=b"hello\n", env=env)
            assert entered == (0, "ready\nHELLO\n")
        assert await capitals_of(here, b"hello") == b"HELLO"
        assert {request.path.split("/")[1] for request in here.worker.asked} == {"containerLogs", "exec"}
        here.workers.configs["w1"] = connection(worker.kubeconfig("less"))
        assert (await here.kubectl("logs", "train-x"))[0] == 0
        code, output = await here.kubectl("exec", "train-x", "--", "true")
        assert (code, 'worker cluster "w1" does not let multikueue do that' in output) == (1, True), output


async def capitals_of(here: Stage, data: bytes) -> bytes:
    """What a command says to its input, by a WebSocket as older clients open it."""
    url = f"{here.manager.url}/api/v1/namespaces/default/pods/train-x/exec"
    query = {"command": "tr", "container": "main", "stdin": "true", "stdout": "true"}
    context = ssl.create_default_context(cadata=here.manager.ca_pem)
    headers = {"Authorization": f"Bearer {here.manager.token('tenant')}"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.ws_connect(url, params=query, ssl=context, protocols=("v4.channel.k8s.io",)) as socket,
    ):
        await socket.send_bytes(b"\0" + data)
        while (said := bytes((await socket.receive()).data)) in (b"\1", b"\2", b"\3", b"\1ready\n"):
            pass  # an API server opens each channel with nothing on it
        return said[1:]


async def test_a_certificate_that_is_asked_for_is_accepted_where_kubelets_are_checked(
    kubelets: AskingKubelets, tmp_path: Path
) -> None:
    """The API server checks it by its --kubelet-certificate-authority; the test plays who approves and signs."""
    authority = make_authority("kubelets", utc_now(), timedelta(days=9))
    (tmp_path / "kubelets.pem").write_text(pem(authority.certificate))

    async def sign(manager: ControlPlane) -> None:
        path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"

        async def is_asked() -> bool:
            return bool((await manager.admin.get(path))["items"])

        await poll_until(is_asked, seconds=30, otherwise="no certificate is asked for")
        (asked,) = (await manager.admin.get(path))["items"]
        assert asked["spec"]["username"] == "endpoint"
        approved = {"type": "Approved", "status": "True", "reason": "Test", "message": "by hand"}
        path = f"{path}/{asked['metadata']['name']}"
        asked = await manager.admin.call("PUT", f"{path}/approval", {**asked, "status": {"conditions": [approved]}})
        asked["status"]["certificate"] = base64.b64encode(signed(authority, asked).encode()).decode()
        await manager.admin.call("PUT", f"{path}/status", asked)

    checked = f"--kubelet-certificate-authority={tmp_path / 'kubelets.pem'}"
    async with (
        asking(tmp_path, checked) as checking,
        stage(checking, tmp_path, meanwhile=sign, signer="kubernetes.io/kubelet-serving") as here,
    ):
        await here.mirror()
        assert await here.kubectl("logs", "train-x") == (0, "one\ntwo\nthree\n")


def signed(authority: ServerKeyPair, asked: Json) -> str:
    """What a signer makes of a request."""
    request = x509.load_pem_x509_csr(base64.b64decode(asked["spec"]["request"]))
    builder = x509.CertificateBuilder(
        authority.certificate.subject,
        request.subject,
        request.public_key(),
        x509.random_serial_number(),
        utc_now() - timedelta(hours=1),
        utc_now() + timedelta(days=1),
        list(request.extensions),
    )
    return pem(builder.sign(authority.key, hashes.SHA256()))
