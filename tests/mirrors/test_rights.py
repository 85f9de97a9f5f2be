"""What is granted with mirrors on, beside what is granted without them: each verb, and no more."""

from __future__ import annotations

import attrs
import pytest

from multikueue.core.model.names import Json
from multikueued.rbac.objects import Account, api_server_objects, logs_worker_objects, manager_objects, worker_objects
from multikueued.settings.config import Settings
from multikueued.settings.sections import MirrorPodSettings

ON = MirrorPodSettings(logs=True, address="10.0.0.7")
ACCOUNT = Account("multikueue", "multikueue")
Granted = set[tuple[str, str, str, str]]


def rights(objects: list[Json]) -> Granted:
    """Namespace, resource, name and verb of each."""
    return {
        (obj["metadata"].get("namespace", ""), resource, name, verb)
        for obj in objects
        for rule in obj.get("rules", ())
        for resource in rule["resources"]
        for name in rule.get("resourceNames", [""])
        for verb in rule["verbs"]
    }


def added(make: object, mirrors: MirrorPodSettings = ON, *more: object, **options: object) -> Granted:
    """What the settings add."""
    assert callable(make)
    off, on = Settings(namespace="kueue-system"), Settings(namespace="kueue-system", mirror_pods=mirrors)
    return rights(make(on, "a", ACCOUNT, *more, **options)) - rights(make(off, "a", ACCOUNT, *more, **options))


def test_the_daemon_makes_nodes_and_mirrors() -> None:
    everywhere = {
        "nodes": {"create", "delete", "get", "list"},
        "nodes/status": {"patch"},
        "pods": {"create", "delete", "list", "watch"},
        "pods/status": {"patch"},
    }
    named = {
        (kind, "multikueue-mirrors", "get")
        for kind in ("validatingadmissionpolicies", "validatingadmissionpolicybindings")
    }
    assert added(manager_objects) == {
        *(("", resource, "", verb) for resource, verbs in everywhere.items() for verb in verbs),
        *(("", *entry) for entry in named),
        *(("kube-node-lease", "leases", "", verb) for verb in ("create", "patch")),
        *(("kueue-system", "secrets", "multikueue-mirrors", verb) for verb in ("get", "patch")),
    }


def test_switched_off_it_may_still_take_them_away() -> None:
    """Of the manager it keeps what it had, as with the chart; of workers nothing."""
    off = MirrorPodSettings(logs=False)
    assert added(manager_objects, off) == added(manager_objects)
    kinds = [obj["kind"] for obj in manager_objects(Settings(namespace="a", mirror_pods=off), "a", ACCOUNT)]
    assert {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} <= {*kinds}
    assert added(worker_objects, off) == added(logs_worker_objects, off) == set()


def test_the_daemon_sees_pods_of_workers_and_enters_none() -> None:
    assert added(worker_objects) == {("", "pods", "", "list"), ("", "pods", "", "watch")}
    assert added(worker_objects, attrs.evolve(ON, exec=True)) == added(worker_objects)


@pytest.mark.parametrize(
    ("mirrors", "more"),
    [
        (ON, {("kueue-system", "secrets", "multikueue-mirrors-tls", verb) for verb in ("get", "patch")}),
        (attrs.evolve(ON, certificate_secret="own"), {("kueue-system", "secrets", "own", "get")}),
        (
            attrs.evolve(ON, certificate_secret="own", signer="example.com/a"),
            {
                *(("kueue-system", "secrets", "own", verb) for verb in ("get", "patch")),
                *(("", "certificatesigningrequests", "", verb) for verb in ("create", "get")),
            },
        ),
    ],
)
def test_who_answers_reads_mirrors_and_two_secrets(mirrors: MirrorPodSettings, more: Granted) -> None:
    least = {("", "pods", "", "get"), ("kueue-system", "secrets", "multikueue-mirrors", "get")}
    assert added(api_server_objects, mirrors, []) == least | more


def test_on_workers_it_reads_logs_and_with_the_second_switch_enters() -> None:
    assert added(logs_worker_objects) == {("", "pods", "", "get")}
    entering = {
        ("", f"pods/{part}", "", verb) for part in ("exec", "attach", "portforward") for verb in ("create", "get")
    }
    assert added(logs_worker_objects, attrs.evolve(ON, exec=True)) == {("", "pods", "", "get"), *entering}
