"""What `doctor --fix` would change: our own webhook's registration and annotations of ours, and nothing else."""

from __future__ import annotations

import attrs

from multikueue.core.model.kinds import MUTATING_WEBHOOKS, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.testing import workload
from multikueued.doctor.checks.table import CHECKS
from multikueued.doctor.checks.webhooks import service_of
from multikueued.doctor.facts import WebhookFacts
from multikueued.doctor.findings import diagnose
from multikueued.doctor.fixes import fixes
from multikueued.settings.config import Settings
from tests.reports.doctor.healthy import healthy, registered, worker_facts
from tests.reports.doctor.test_checks import CASES
from tests.reports.objects import job

OFF = Settings(namespace="kueue-system")


def test_a_left_over_registration_is_deleted_by_uid() -> None:
    ours: dict[str, Json] = registered()
    ours["multikueue-webhook"]["metadata"].update(uid="seen", resourceVersion="7")
    (service,) = [service_of(entry) for entry in ours["multikueue-webhook"]["webhooks"]]
    (fix,) = fixes(healthy(settings=OFF, webhooks=WebhookFacts(ours, services={service: False})))
    assert fixes(healthy(settings=OFF, webhooks=WebhookFacts(ours))) == (), "it may be another daemon's"

    assert (fix.resource, fix.key, fix.uid, fix.version, fix.patch) == (
        MUTATING_WEBHOOKS,
        ObjectKey("", "multikueue-webhook"),
        "seen",
        "7",
        None,
    )


def test_one_that_others_share_stays() -> None:
    ours: dict[str, Json] = registered()
    ours["multikueue-webhook"]["webhooks"].append({"name": "policy.example.com"})
    assert fixes(healthy(settings=OFF, webhooks=WebhookFacts(ours))) == ()


def test_without_the_daemons_settings_nobody_knows_what_is_left_over() -> None:
    assert fixes(healthy(settings=OFF, settings_known=False)) == ()


def test_an_annotation_of_ours_that_is_no_time_is_taken_off() -> None:
    made = workload(job())
    made["metadata"]["annotations"] = {"multikueue.dev/retry-at": "now"}
    (fix,) = fixes(healthy(made))

    assert fix.resource == WORKLOAD
    seen = {field: made["metadata"][field] for field in ("uid", "resourceVersion")}
    assert fix.patch == {"metadata": {**seen, "annotations": {"multikueue.dev/retry-at": None}}}


def test_nothing_else_is_touched() -> None:
    """Of all breaks only those two lead to a change."""
    led = {name for name, facts, _, _ in CASES if fixes(facts)}
    assert led <= {"webhook-left-over", "webhook-order", "annotation-unreadable"}


def test_what_is_mended_is_no_finding_any_more() -> None:
    facts = healthy(settings=OFF)
    assert [one.id for one in diagnose(facts, CHECKS).findings] == ["webhook-left-over"]
    mended = attrs.evolve(facts, webhooks=WebhookFacts({}), workers={"worker1": worker_facts()})
    assert diagnose(mended, CHECKS).findings == ()
