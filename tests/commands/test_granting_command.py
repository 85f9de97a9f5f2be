"""What `doctor` says to type where the daemon lacks a right on the manager: a shell runs it as it stands."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import attrs
import pytest
import yaml

from multikueue.core.model.names import ObjectKey
from multikueued.doctor.checks.access import granting
from multikueued.settings.config import Settings
from tests.reports.doctor.healthy import healthy

MARKS = Settings().marks_secret
SETTINGS = "managerName: east\nboundTokens:\n  enabled: true\n"
_KUBECTL = """#!/bin/sh
printf '%s\\n' "$*" >> "$0.calls"
case "$*" in *configmap*) cat "$0.settings" ;; *) cat > "$0.applied" ;; esac
"""


@pytest.mark.parametrize("source", ["defaults", "file", "config map"])
def test_a_shell_grants_the_daemons_account_what_its_settings_need(source: str, tmp_path: Path) -> None:
    file = tmp_path / "our settings.yaml"
    file.write_text(SETTINGS)
    kubectl, ours = tmp_path / "kubectl", tmp_path / "multikueue"
    (tmp_path / "kubectl.settings").write_text(SETTINGS)
    kubectl.write_text(_KUBECTL)
    ours.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m multikueued "$@"\n')
    for one in (kubectl, ours):
        one.chmod(0o755)
    given = {"defaults": None, "file": file, "config map": ObjectKey("team", "settings")}[source]
    facts = attrs.evolve(
        healthy(),
        account="system:serviceaccount:team:daemon",
        settings_source=given,
        kubectl="kubectl --context 'the manager'",
    )
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run(["sh", "-ec", granting(facts)], check=True, env={**os.environ, **path}, timeout=60)
    objects = list(yaml.safe_load_all((tmp_path / "kubectl.applied").read_text()))
    subjects = {(one["namespace"], one["name"]) for obj in objects for one in obj.get("subjects", ())}
    assert subjects == {("team", "daemon")}
    secrets = [rule for obj in objects for rule in obj.get("rules", ()) if rule["resources"] == ["secrets"]]
    renewing = [rule for rule in secrets if "patch" in rule["verbs"] and rule.get("resourceNames") != [MARKS]]
    assert bool(renewing) is (source != "defaults"), "only these settings have tokens renewed"
    calls = (tmp_path / "kubectl.calls").read_text().splitlines()
    read = r"--context the manager -n team get configmap settings -o jsonpath={.data.settings\.yaml}"
    assert sorted(calls) == sorted(["--context the manager apply -f -", *([read] if source == "config map" else [])])
