"""Checks of our admission webhook's registration on the manager."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from cryptography import x509

from multikueue.core.admission.registration import WEBHOOK
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueued.diagnosis.facts import Facts
from multikueued.diagnosis.findings import Spot, check
from multikueued.reports.remedies.remedy import Severity

KUEUES: Final = "kueue-mutating-webhook-configuration"
"""Kueue's MutatingWebhookConfiguration."""


def ours(facts: Facts) -> dict[str, Json]:
    """The entry of ours in each MutatingWebhookConfiguration that has one, by the configuration's name."""
    known = facts.webhooks.configurations if facts.webhooks is not None else {}
    return {
        name: entry
        for name, configuration in known.items()
        for entry in configuration.get("webhooks") or []
        if entry.get("name") == WEBHOOK
    }


@check("webhook-not-registered")
def not_registered(facts: Facts) -> Iterator[Spot]:
    """The webhook is enabled, and API servers are not told to ask it."""
    if facts.webhooks is not None and facts.settings_known and facts.settings.webhook.enabled and not ours(facts):
        yield Spot(f"MutatingWebhookConfiguration {facts.settings.webhook.configuration_name}", "it does not exist")


@check("webhook-off")
def off(facts: Facts) -> Iterator[Spot]:
    """Queues lead to workers, and nobody fills in managedBy of new jobs."""
    known = facts.webhooks is not None and facts.settings_known and not facts.settings.webhook.enabled
    known = known and not ours(facts)  # one that is left over is told as such
    fills_in = any(kind.delegation.path is not None for kind in facts.kinds)
    if known and fills_in and any(facts.objects.check_of_queue(queue) for queue in facts.objects.cluster_queues):
        yield Spot("the manager", "queues lead to workers, and the webhook is off: a job must name managedBy itself")


def stale(facts: Facts) -> dict[str, Json]:
    """Entries of ours that nobody keeps: the webhook is off, or has another name by now."""
    if not facts.settings_known:
        return {}
    kept = str(facts.settings.webhook.configuration_name) if facts.settings.webhook.enabled else ""
    return {name: entry for name, entry in ours(facts).items() if name != kept}


@check("webhook-left-over")
def left_over(facts: Facts) -> Iterator[Spot]:
    """Our webhook is registered, and the settings have it off or name it otherwise; an error with
    `failurePolicy: Fail`.
    """
    for name, entry in stale(facts).items():
        closed = entry.get("failurePolicy") == "Fail"
        effect = "jobs with a queue are refused" if closed else "API servers ask in vain for each new job"
        severity = Severity.ERROR if closed else Severity.WARNING
        why = "have another name" if facts.settings.webhook.enabled else "have it off"
        what = f"it is registered, and the settings {why}: {effect}"
        yield Spot(f"MutatingWebhookConfiguration {name}", what, severity=severity, words={"name": name})


@check("webhook-order")
def before_kueues(facts: Facts) -> Iterator[Spot]:
    """Our webhook is asked before Kueue's."""
    known = facts.webhooks.configurations if facts.webhooks is not None else {}
    for name in ours(facts):
        if KUEUES in known and name < KUEUES:
            yield Spot(f"MutatingWebhookConfiguration {name}", f"its name comes before {KUEUES}: it is asked first")


@check("webhook-authority")
def without_authority(facts: Facts) -> Iterator[Spot]:
    """Our webhook has no certificate authority, or one that has expired."""
    for name, entry in ours(facts).items():
        where = f"MutatingWebhookConfiguration {name}"
        bundle = str(dig(entry, "clientConfig", "caBundle") or "")
        if not bundle and dig(entry, "clientConfig", "service"):
            yield Spot(where, "it names no certificate authority (caBundle)", {"name": name})
        elif bundle:
            until = expires(bundle)
            if until is None:
                yield Spot(where, "its caBundle holds no certificate that can be read", {"name": name})
            elif until < facts.now:
                yield Spot(where, f"its certificate authority expired at {until:%Y-%m-%dT%H:%M:%SZ}", {"name": name})


def service_of(entry: Json) -> ObjectKey:
    """The Service that a registration names."""
    service = dig(entry, "clientConfig", "service") or {}
    return ObjectKey(str(service.get("namespace") or ""), str(service.get("name") or ""))


def is_gone(facts: Facts, service: ObjectKey) -> bool:
    """Whether a Service is known not to exist."""
    return facts.webhooks is not None and facts.webhooks.services.get(service) is False


@check("webhook-service")
def without_service(facts: Facts) -> Iterator[Spot]:
    """Our webhook names a Service that does not exist."""
    for name, entry in ours(facts).items():
        if is_gone(facts, key := service_of(entry)):
            yield Spot(f"MutatingWebhookConfiguration {name}", f"it names Service {key}, which does not exist")


@check("webhook-kinds")
def kinds_not_asked_about(facts: Facts) -> Iterator[Spot]:
    """Our webhook is not asked about a kind that is enabled."""
    if not facts.settings_known or not facts.settings.webhook.enabled:
        return
    for name, entry in ours(facts).items():
        asked = {
            (group, plural)
            for rule in entry.get("rules") or []
            for group in rule.get("apiGroups") or []
            for plural in rule.get("resources") or []
        }
        for kind in facts.kinds:
            resource = kind.resource
            if kind.delegation.path is None or kind.workload_only or resource.gvk in facts.lacking:
                continue
            if (resource.gvk.group, resource.plural) not in asked:
                yield Spot(f"MutatingWebhookConfiguration {name}", f"it is not asked about {resource}")


def expires(bundle: str) -> datetime | None:
    """When the last certificate of a bundle (PEM in base64) expires; None if there is none that can be read."""
    try:
        certificates = x509.load_pem_x509_certificates(base64.b64decode(bundle))
    except ValueError:
        return None
    return max((certificate.not_valid_after_utc for certificate in certificates), default=None)
