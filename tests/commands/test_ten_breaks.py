"""The ten breaks of the operator's protocol: doctor, status and explain tell each with one finding, and a remedy whose
commands can be pasted."""

from __future__ import annotations

from functools import partial
from typing import Final, TypeAlias

import attrs
import pytest

from multikueue.core.model.kinds import CONFIG_MAP, DEPLOYMENT, LEASE, RESOURCE_FLAVOR, SECRET
from multikueue.core.model.names import Json, ObjectKey
from multikueue.errors import Forbidden, NotFound, ServerFault
from multikueue.sandbox.apiserver import DirectClient
from multikueue.sandbox.setting_up import KUEUE_NAMESPACE
from multikueued.commands.status import gather_status
from multikueued.remote.shared_key import ORIGIN
from multikueued.reports.published import NAME, Published, config_map, written
from multikueued.reports.remedies.remedy import Finding, Severity
from multikueued.reports.worker_facts import ClockBound, WorkerFacts
from multikueued.settings.config import Settings
from tests.commands.breaking import Change, Person, Refusals, explained, seen_after
from tests.commands.diagnosing import diagnosed
from tests.commands.remedies_printed import flaws_of
from tests.commands.test_breaks import delete_queue, partition, refuse, spoil_token
from tests.commands.test_doctor_on_servers import config_map as config
from tests.commands.test_doctor_on_servers import deployment
from tests.runtime.fleet import Fleet, now

pytestmark = pytest.mark.looptime

AHEAD: Final = ClockBound(119.0, 121.0)
COMMANDS: Final = ("doctor", "status", "explain")
Told: TypeAlias = dict[str, tuple[str, str]]
"""By command the id, and what the remedy has."""


async def spoil_kubeconfig(fleet: Fleet) -> None:
    key = ObjectKey(KUEUE_NAMESPACE, "worker1-secret")
    await fleet.admin.merge_patch(SECRET, key, {"data": {"kubeconfig": "fXsgbm8gWUFNTA=="}})


async def delete_flavor(fleet: Fleet) -> None:
    worker = DirectClient(fleet.workers["worker1"])
    for item in (await worker.list(RESOURCE_FLAVOR)).items:
        await worker.delete(RESOURCE_FLAVOR, ObjectKey.of(item))


async def set_clock(fleet: Fleet) -> None:
    """As the daemon publishes it: no command but the doctor measures clocks itself."""
    facts = {"worker1": written(Published(WorkerFacts("worker1", clock=AHEAD), at=now()))}
    await fleet.admin.create(CONFIG_MAP, config_map(KUEUE_NAMESPACE, NAME, facts))


_CONTAINER: Final = {"name": "multikueued", "image": "multikueue"}
_SETTINGS: Final = {"name": "settings", "configMap": {"name": "settings"}}


async def change_origin(fleet: Fleet) -> None:
    """The daemon refuses to start, and so nobody leads."""
    settings = Settings()
    spec = {"holderIdentity": "gone", "renewTime": "2020-01-01T00:00:00.000000Z", "leaseDurationSeconds": 15}
    lease = {"metadata": {"namespace": KUEUE_NAMESPACE, "name": settings.name}, "spec": spec}
    await fleet.admin.create(LEASE, {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", **lease})
    for resource, obj in (
        (
            DEPLOYMENT,
            deployment(
                "multikueued", {"app.kubernetes.io/name": "multikueued"}, containers=[_CONTAINER], volumes=[_SETTINGS]
            ),
        ),
        (CONFIG_MAP, config("settings", "settings.yaml", {"namespace": KUEUE_NAMESPACE, "origin": "latter"})),
    ):
        await fleet.admin.create(resource, obj)
    noted: Json = {"namespace": KUEUE_NAMESPACE, "name": settings.marks_secret, "annotations": {ORIGIN: "former"}}
    await fleet.admin.create(SECRET, {"apiVersion": "v1", "kind": "Secret", "metadata": noted})


def all_say(finding: str, remedy: str, doctor: tuple[str, str] | None = None) -> Told:
    return dict.fromkeys(COMMANDS, (finding, remedy)) | ({"doctor": doctor} if doctor is not None else {})


@attrs.frozen
class Break:
    """What is broken, and what each command tells."""

    name: str
    expected: Told
    before: Change | None = None
    after: Change | None = None
    refusals: Refusals = attrs.field(factory=dict)
    severity: Severity = Severity.ERROR
    seconds: float = 60.0
    workers: int = 1


_DENIED: Final = (
    "create workloads.kueue.x-k8s.io: workloads.kueue.x-k8s.io is forbidden: User "
    '"system:serviceaccount:kueue-system:multikueue" cannot create resource "workloads" in API group "kueue.x-k8s.io"'
)
_NOT_SERVED: Final = "list jobs.batch: the server could not find the requested resource"
DEAD: Final = 'create: Internal error occurred: failed calling webhook "mutate.example.com": connection refused'
_MIRROR: Final = "multikueue queues mirror user-queue -n default --worker-context worker1 --worker worker1"
BREAKS: Final = (
    Break(
        "kubeconfig broken",
        all_say(
            "kubeconfig-refused",
            "correct what it names",
            ("kubeconfig-unusable", "create secret generic worker1-secret"),
        ),
        before=spoil_kubeconfig,
    ),
    Break("token void", all_say("bad-token", "create secret generic worker1-secret"), before=spoil_token),
    Break(
        "verb missing",
        all_say(
            "rbac",
            "multikueue rbac worker",
            ("worker-permission-missing", "multikueue rbac worker --least --user NAME"),
        ),
        refusals=refuse(Forbidden, 403, ("create", "workloads"), words=_DENIED),
    ),
    Break(
        "CRD missing",
        all_say("crd-missing", "install it there", ("worker-without-kind", "install the CustomResourceDefinition")),
        refusals=refuse(NotFound, 404, ("list", "jobs"), words=_NOT_SERVED),
    ),
    Break(
        "other origin",
        all_say(
            "daemon-not-running",
            "kubectl get pods -A -l app.kubernetes.io/name=multikueued",
            ("origin-changed", f"kubectl annotate secret {Settings().marks_secret} -n {KUEUE_NAMESPACE}"),
        ),
        after=change_origin,
    ),
    Break(
        "LocalQueue missing",
        all_say("local-queue-missing", _MIRROR, ("worker-local-queue-missing", _MIRROR)),
        before=delete_queue,
    ),
    Break(
        "flavor missing",
        all_say("queue-inactive", "kubectl --context worker1", ("worker-cluster-queue", "condition Active")),
        before=delete_flavor,
    ),
    Break("clock off", all_say("worker-clock", "NTP"), before=set_clock, severity=Severity.WARNING),
    Break("worker down", all_say("worker-down", "look whether its API server runs"), after=partition("reset")),
    Break(
        "webhook down",
        all_say("webhook-down", "start what serves it, or remove its registration there"),
        refusals=refuse(ServerFault, 500, ("create", "workloads"), words=DEAD),
        seconds=120.0,  # for a minute it may pass
    ),
)


async def told_by(command: str, case: Break, fleet: Fleet) -> list[Finding]:
    """All that a command finds, but for hints."""
    match command:
        case "doctor":
            clock = AHEAD if case.name == "clock off" else ClockBound(-0.5, 0.5)
            findings = (await diagnosed(fleet, case.refusals, clock=clock)).findings
        case "status":
            findings = (await gather_status(Person(fleet.manager), now(), KUEUE_NAMESPACE)).findings
        case _:
            findings = (await explained(fleet)).findings
    return [finding for finding in findings if finding.severity is not Severity.INFO]


async def only_findings(case: Break) -> dict[str, Finding]:
    """What each command tells of a break: one finding, the right one, with a remedy that can be pasted."""

    async def look(fleet: Fleet) -> dict[str, list[Finding]]:
        return {command: await told_by(command, case, fleet) for command in COMMANDS}

    how = partial(seen_after, refusals=case.refusals, seconds=case.seconds)
    by_command = await how(look, case.workers, before=case.before, after=case.after)
    assert {
        command: [(finding.id, finding.severity) for finding in findings] for command, findings in by_command.items()
    } == {command: [(expected, case.severity)] for command, (expected, _) in case.expected.items()}
    only = {command: finding for command, (finding,) in by_command.items()}
    for command, (_, remedy) in case.expected.items():
        assert remedy in only[command].remedy
        assert flaws_of(only[command].remedy) == {}
    return only


@pytest.mark.parametrize("case", BREAKS, ids=lambda case: case.name.replace(" ", "-"))
async def test_each_command_tells_a_break_with_one_finding(case: Break) -> None:
    await only_findings(case)
