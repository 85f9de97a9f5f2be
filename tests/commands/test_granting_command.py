"""What `doctor` says to type where the daemon lacks a right, here or on a worker: a shell runs it as it stands."""

from __future__ import annotations

import base64
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml

from multikueue.core.model.names import Json, ObjectKey
from multikueued.diagnosis.checks.access import granting, granting_there
from multikueued.diagnosis.checks.workers import on_workers
from multikueued.diagnosis.facts import Facts
from multikueued.doctor.credentials import account_of
from multikueued.rbac.rules import on_worker
from multikueued.reports.worker_facts import KubeconfigFacts
from multikueued.settings.config import Settings
from tests.examples import shared
from tests.reports.doctor.healthy import ALLOWED, healthy, worker_facts

MARKS = Settings().marks_secret
SETTINGS = "managerName: east\nboundTokens:\n  enabled: true\n"
_KUBECTL = """#!/bin/sh
printf '%s\\n' "$*" >> "$0.calls"
case "$*" in *configmap*) cat "$0.settings" ;; *) cat > "$0.applied" ;; esac
"""


@attrs.frozen
class Shell:
    """A shell with a `kubectl` that keeps what it is given, and `multikueue` as it is."""

    folder: Path

    @classmethod
    def made(cls, folder: Path) -> Shell:
        kubectl, ours = folder / "kubectl", folder / "multikueue"
        (folder / "kubectl.settings").write_text(SETTINGS)
        kubectl.write_text(_KUBECTL)
        ours.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m multikueued "$@"\n')
        for program in (kubectl, ours):
            program.chmod(0o755)
        return cls(folder)

    def applied(self, command: str) -> list[Json]:
        """The objects that the command gives to kubectl."""
        path = {"PATH": f"{self.folder}:{os.environ['PATH']}"}
        subprocess.run(["sh", "-ec", command], check=True, env={**os.environ, **path}, timeout=60)
        return list(yaml.safe_load_all((self.folder / "kubectl.applied").read_text()))

    @property
    def calls(self) -> list[str]:
        """How kubectl was called."""
        return sorted((self.folder / "kubectl.calls").read_text().splitlines())


def lacking(source: str, folder: Path, **changed: Any) -> Facts:
    """What is known of a daemon with these settings."""
    file = folder / "our settings.yaml"
    file.write_text(SETTINGS)
    given = {"defaults": None, "file": file, "config map": ObjectKey("team", "settings")}[source]
    return attrs.evolve(healthy(), settings_source=given, kubectl="kubectl --context 'the manager'", **changed)


READ = r"--context the manager -n team get configmap settings -o jsonpath={.data.settings\.yaml}"


@pytest.mark.parametrize("source", shared(["defaults", "file", "config map"]))
def test_a_shell_grants_the_daemons_account_what_its_settings_need(source: str, tmp_path: Path) -> None:
    shell = Shell.made(tmp_path)
    objects = shell.applied(granting(lacking(source, tmp_path, account="system:serviceaccount:team:daemon")))
    subjects = {(subject["namespace"], subject["name"]) for obj in objects for subject in obj.get("subjects", ())}
    assert subjects == {("team", "daemon")}
    secrets = [rule for obj in objects for rule in obj.get("rules", ()) if rule["resources"] == ["secrets"]]
    renewing = [rule for rule in secrets if "patch" in rule["verbs"] and rule.get("resourceNames") != [MARKS]]
    assert bool(renewing) is (source != "defaults"), "only these settings have tokens renewed"
    assert shell.calls == sorted(["--context the manager apply -f -", *([READ] if source == "config map" else [])])


@pytest.mark.parametrize("source", shared(["defaults", "file", "config map"]))
def test_a_shell_grants_the_account_of_a_workers_kubeconfig_what_is_missing_there(source: str, tmp_path: Path) -> None:
    shell, held = Shell.made(tmp_path), KubeconfigFacts("worker1-secret", account="there/east", bound=None)
    refused = (attrs.evolve(ALLOWED, allowed=False),)
    facts = lacking(
        source, tmp_path, credentials={"worker1": held}, workers={"worker1": worker_facts(permissions=refused)}
    )
    (finding,) = on_workers.findings(facts)
    command = granting_there(facts, "worker1")
    assert finding.remedy == f"grant it there: {command}"
    objects = shell.applied(command)
    assert {(subject["namespace"], subject["name"]) for obj in objects for subject in obj.get("subjects", ())} == {
        ("there", "east")
    }
    (role,) = (obj for obj in objects if obj["kind"] == "ClusterRole")
    assert role["metadata"]["name"] == "there-east", "the one that worker add makes"
    settings = Settings(manager_name="east") if source != "defaults" else Settings()
    assert role["rules"] == on_worker(settings), "what the daemon needs there, and nothing that shows why jobs wait"
    calls = ["--context worker1 auth reconcile -f -", *([READ] if source == "config map" else [])]
    assert shell.calls == sorted(calls), "what the role has beside it stays"


def test_of_whom_the_worker_says_nothing_the_name_is_to_be_filled_in() -> None:
    refused = (attrs.evolve(ALLOWED, allowed=False),)
    (finding,) = on_workers.findings(healthy(workers={"worker1": worker_facts(permissions=refused)}))
    assert "--user NAME | kubectl --context worker1 auth reconcile" in finding.remedy


@pytest.mark.parametrize(
    ("claims", "account"),
    [
        ({"sub": "system:serviceaccount:kueue-system:multikueue"}, "kueue-system/multikueue"),
        ({"sub": "alice"}, ""),
        ({"sub": "system:serviceaccount:a"}, ""),
        ({"sub": "system:serviceaccount:a:b;rm -rf"}, ""),
        ({"sub": "system:serviceaccount:--all:b"}, ""),
        ({"sub": 3}, ""),
        ({}, ""),
    ],
)
def test_the_account_is_the_one_that_its_token_says(claims: Json, account: str) -> None:
    part = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    assert account_of(f"e30.{part}.sig") == account
    assert account_of("opaque") == ""


@pytest.mark.parametrize(
    ("user", "subject"),
    [
        ("system:serviceaccount:there:east", {"kind": "ServiceAccount", "namespace": "there", "name": "east"}),
        ("system:node:oslo", {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "system:node:oslo"}),
        ("jane@example.com", {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "jane@example.com"}),
    ],
)
def test_whose_credentials_say_nothing_is_granted_it_by_the_name_that_the_worker_has_for_him(
    user: str, subject: Json, tmp_path: Path
) -> None:
    """`worker add` was told, which refuses a MultiKueueCluster that it has not made."""
    shell, refused = Shell.made(tmp_path), (attrs.evolve(ALLOWED, allowed=False),)
    seen = worker_facts(permissions=refused, user=user)
    facts = lacking("defaults", tmp_path, credentials={"worker1": KubeconfigFacts("s")}, workers={"worker1": seen})
    (finding,) = on_workers.findings(facts)
    assert finding.remedy == f"grant it there: {granting_there(facts, 'worker1')}"
    subjects = [
        subject for obj in shell.applied(granting_there(facts, "worker1")) for subject in obj.get("subjects", ())
    ]
    assert subjects == [subject]


@pytest.mark.parametrize("user", ["", "$(reboot)", "-x", "a b", "a;b", "a\nb"])
def test_what_a_worker_calls_somebody_is_no_command(user: str, tmp_path: Path) -> None:
    assert granting_there(lacking("defaults", tmp_path, workers={"worker1": worker_facts(user=user)}), "worker1") == ""
