"""The rows of what is to be mended of the webhook's registration."""

from __future__ import annotations

from typing import Final

from multikueued.reports.doctor import webhooks
from multikueued.reports.doctor.findings import Check, Severity

ERROR, WARNING = Severity.ERROR, Severity.WARNING

WEBHOOK_CHECKS: Final = (
    Check(
        "webhook-not-registered",
        ERROR,
        "manager",
        "the webhook is enabled, and API servers are not told to ask it",
        "jobs without managedBy are rejected",
        "look whether the daemon runs, and in its log for 'cannot register the webhook': it registers it itself",
        webhooks.not_registered,
    ),
    Check(
        "webhook-left-over",
        WARNING,
        "manager",
        "our webhook is registered, and the settings have it off or name it otherwise; an error with "
        "`failurePolicy: Fail`",
        "API servers ask somebody who does not answer",
        "remove it: multikueue doctor --fix, or kubectl delete mutatingwebhookconfiguration {name}",
        webhooks.left_over,
    ),
    Check(
        "webhook-order",
        ERROR,
        "manager",
        "our webhook is asked before Kueue's",
        "a job that gets its queue from Kueue is not seen by ours, and is rejected",
        "give it a later name: webhook.configurationName in the daemon's settings; the old one is removed by "
        "multikueue doctor --fix once it is left over",
        webhooks.before_kueues,
    ),
    Check(
        "webhook-authority",
        ERROR,
        "manager",
        "our webhook has no certificate authority, or one that has expired",
        "API servers cannot call it",
        "look whether the daemon runs and may write MutatingWebhookConfiguration {name}; with webhook.certDir, put "
        "ca.crt beside the certificate",
        webhooks.without_authority,
    ),
    Check(
        "webhook-service",
        ERROR,
        "manager",
        "our webhook names a Service that does not exist",
        "API servers cannot call it",
        "correct webhook.serviceName and serviceNamespace in the daemon's settings, or make that Service",
        webhooks.without_service,
    ),
    Check(
        "webhook-kinds",
        WARNING,
        "manager",
        "our webhook is not asked about a kind that is enabled",
        "jobs of that kind without managedBy are rejected",
        "look whether the daemon runs with these settings: it registers the kinds itself",
        webhooks.kinds_not_asked_about,
    ),
)
"""What is to be mended of our webhook's registration."""
