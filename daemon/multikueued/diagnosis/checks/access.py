"""Checks of permissions and credentials: the daemon's on the manager, and those it has for workers."""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final

import attrs

from multikueue.core.model.conditions import is_true, timestamp
from multikueue.core.model.names import SERVICE_ACCOUNT_USER, ObjectKey
from multikueued.diagnosis.facts import SETTINGS_FIELD, Facts, Unread
from multikueued.diagnosis.findings import Spot, check
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.remedies.remedy import Severity, is_name
from multikueued.reports.worker_facts import KubeconfigFacts, Permission, secret_name
from multikueued.reports.workers import digest_in_use

_USER: Final = re.compile(r"[A-Za-z0-9][\w.:@-]{0,252}", re.ASCII)
"""What a worker may call somebody who stands in a command."""
SOON: Final = timedelta(days=7)
"""Credentials that expire within it are a warning."""
OVERDUE: Final = timedelta(days=1)
"""The same for those that the manager of the clusters renews; OCM does when a fifth of their life is left."""


@check("permission-missing")
def on_manager(facts: Facts) -> Iterator[Spot]:
    """The daemon's service account lacks a verb on the manager."""
    if lacking := refused(facts.permissions):
        why = f"{facts.account} may not {lacking}"
        yield Spot("the manager", why, {"grant": granting(facts)}, instead="permission-missing@known")


def granting(facts: Facts) -> str:
    """What to type to grant the daemon all that it needs on the manager, with its settings and for its account."""
    account = facts.account.removeprefix(SERVICE_ACCOUNT_USER).replace(":", "/")
    return f"{_printing(facts, 'manager', '--service-account', account)} | {facts.kubectl} apply -f -"


def granting_there(facts: Facts, worker: str) -> str:
    """What to type to grant the daemon what it lacks on a worker: `auth reconcile` adds that to the account's role, and
    takes nothing away. Empty: it is not known whose its kubeconfig is.
    """
    held, seen = facts.credentials.get(worker), facts.workers.get(worker)
    user = seen.user if seen is not None else ""
    account = (held.account if held is not None else "") or account_named(user)
    if not account and _USER.fullmatch(user) is None:
        return ""
    bound = ["--bound"] if held is not None and held.bound is not None else []
    role = ["--service-account", account, "--name", account.replace("/", "-")] if account else ["--user", user]
    kubectl = shlex.join(["kubectl", "--context", worker, "auth", "reconcile", "-f", "-"])
    return f"{_printing(facts, 'worker', '--least', *bound, *role)} | {kubectl}"


def account_named(subject: str) -> str:
    """NAMESPACE/NAME of the service account that an API server names so; empty: it is none."""
    namespace, _, name = subject.removeprefix(SERVICE_ACCOUNT_USER).partition(":")
    return (
        f"{namespace}/{name}"
        if subject.startswith(SERVICE_ACCOUNT_USER) and all(map(is_name, (namespace, name)))
        else ""
    )


def _printing(facts: Facts, side: str, *options: str) -> str:
    """What to type to have `multikueue rbac` print the rules of one side, for the daemon's settings."""
    read, config = "", list[str]()
    match facts.settings_source:
        case ObjectKey(namespace, name):
            field = "-o jsonpath='{.data." + SETTINGS_FIELD.replace(".", r"\.") + "}'"
            read = f"{facts.kubectl} {shlex.join(['-n', namespace, 'get', 'configmap', name])} {field} | "
            config = ["--config", "/dev/stdin"]
        case Path() as file:
            config = ["--config", str(file)]
        case Unread() as unread:
            config = ["--config", unread.value]
    return read + shlex.join(["multikueue", "rbac", side, *config, *options])


def refused(permissions: Sequence[Permission]) -> str:
    """Those that are lacking, in a line: the verbs of each resource together."""
    verbs: dict[Permission, list[str]] = defaultdict(list)
    for permission in permissions:
        if not permission.allowed:
            verbs[attrs.evolve(permission, verb="")].append(permission.verb)
    return "; ".join(f"{', '.join(names)}{resource}" for resource, names in verbs.items())


@check("credentials-expire")
def expiring(facts: Facts) -> Iterator[Spot]:
    """A worker's token or client certificate has expired (error), or does within seven days (warning; within one
    if the manager of the clusters renews it, as Open Cluster Management does; where the daemon does, once it is late).
    """
    for worker, credentials in sorted(facts.credentials.items()):
        ends, others = credentials.token_expires, credentials.renewed or credentials.secret != secret_name(worker)
        renews = facts.settings.bound_tokens.enabled or not facts.settings_known
        kept = renews and credentials.bound is not None and not credentials.bound.is_late(facts.now)
        if kept and ends is not None and ends > facts.now:
            ends = None
        for what, until in (("token", ends), ("client certificate", credentials.certificate_expires)):
            if until is not None and until < facts.now + (OVERDUE if credentials.renewed else SOON):
                yield Spot(
                    f"{worker}, Secret {credentials.secret}" if credentials.secret else worker,
                    f"the {what} {'expired' if until < facts.now else 'expires'} at {timestamp(until)}",
                    {"worker": worker, "secret": credentials.secret, "secrets": facts.objects.daemon_namespace},
                    severity=Severity.ERROR if until < facts.now else Severity.WARNING,
                    instead=f"credentials-expire@{'renewed' if credentials.renewed else 'by-hand'}" if others else "",
                    workers=(worker,) if until < facts.now else (),  # nothing fails yet
                )


@check("bound-token")
def bound(facts: Facts) -> Iterator[Spot]:
    """A worker's token ends, and from when on the daemon renews it; an error if it does not."""
    for worker, credentials in sorted(facts.credentials.items()):
        if credentials.bound is None:
            continue
        where, ends = f"{worker}, Secret {credentials.secret}", credentials.token_expires or credentials.bound.expires
        until = f"its token ends at {timestamp(ends)}" if ends is not None else "nobody knows when its token ends"
        if not facts.settings_known:
            yield Spot(where, f"{until}; the daemon's settings are not known, so nobody knows whether it is renewed")
        elif not facts.settings.bound_tokens.enabled:
            why = f"{until}, and the daemon does not renew it"
            yield Spot(where, why, severity=Severity.ERROR, instead="bound-token@off")
        elif credentials.bound.renewed_at is not None:
            yield Spot(where, f"{until}; the daemon renews it from {timestamp(credentials.bound.renewed_at)} on")
        else:
            yield Spot(where, f"{until}; the daemon renews it now")


@check("kubeconfig-unusable")
def unusable(facts: Facts) -> Iterator[Spot]:
    """The kubeconfig in a worker's Secret cannot be used."""
    for worker, credentials in sorted(facts.credentials.items()):
        if credentials.problem:
            where = f"{worker}, Secret {credentials.secret}"
            words = {"worker": worker, "secret": credentials.secret}
            words |= {"secrets": facts.objects.daemon_namespace, "outside": facts.outside}
            instead = "" if credentials.secret == secret_name(worker) else "kubeconfig-unusable@by-hand"
            yield Spot(where, credentials.problem, words, instead=instead, workers=(worker,))


@check("credentials-not-in-use")
def not_in_use(facts: Facts) -> Iterator[Spot]:
    """The daemon is connected with other credentials than the Secret has; that these do not work is told instead."""
    for worker, credentials in sorted(facts.credentials.items()):
        silent = worker in facts.workers and facts.workers[worker].error
        if has_new_credentials(worker, credentials, facts.objects) and not silent:
            why = f"the daemon is connected with other credentials than Secret {credentials.secret} has"
            yield Spot(worker, why, {"worker": worker})


def has_new_credentials(worker: str, credentials: KubeconfigFacts, objects: ManagerObjects) -> bool:
    """Whether the daemon is connected to a worker with other credentials than its Secret has."""
    cluster = objects.clusters_by_name.get(worker, {})
    used = digest_in_use(cluster) if is_true(cluster, "Active") else ""  # a lost one is connected with none
    return bool(used and credentials.digest) and used != credentials.digest
