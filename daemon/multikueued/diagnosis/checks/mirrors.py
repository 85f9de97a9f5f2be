"""Checks of mirrors: whether the manager's API server reaches who answers for their logs, and why it does not."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from multikueued.diagnosis.facts import Facts
from multikueued.diagnosis.findings import Spot, check, row
from multikueued.reports.remedies.remedy import REMEDIES, RULES, Finding
from multikueued.reports.remedies.trouble import known_by

WAY_RULES: Final = RULES["mirror-words"]
"""About what an API server says that gets no answer."""


def _on_the_way(facts: Facts, id: str) -> Iterator[Finding]:
    way = facts.mirrors.way if facts.mirrors is not None else None
    if way is not None and way.said:
        known, _ = known_by(WAY_RULES, way.said) or (REMEDIES["mirror-way"], {})
        if known.id == id:
            yield known.about(f"Node {way.node}", "", {"node": way.node, "said": way.said})


@check("mirror-policy")
def policy(facts: Facts) -> Iterator[Spot]:
    """Mirrors are on, and the ValidatingAdmissionPolicy that bounds them, or its binding, is not there."""
    if facts.mirrors is not None and facts.mirrors.is_bounded is False:
        yield Spot(f"ValidatingAdmissionPolicy {facts.settings.mirrors_policy}", "it, or its binding, does not exist")


@check("mirror-node")
def node(facts: Facts) -> Iterator[Spot]:
    """Mirrors are on, and there is no Node of a worker."""
    way = facts.mirrors.way if facts.mirrors is not None else None
    if way is not None and way.is_missing:
        yield Spot(f"Node {way.node}", "it does not exist")


_FINDS: Final = {
    "mirror-client-certificate": "The manager's API server shows no client certificate to kubelets, or one that may "
    "not ask them",
    "mirror-certificate": "The manager's API server does not accept the certificate of who answers for mirrors",
    "mirror-firewall": "The manager's API server gets no packet back from who answers for mirrors",
    "mirror-address": "Nobody listens at the address of who answers for mirrors",
    "mirror-way": "Something else than multikueue answers for mirrors, or it is not known what",
}
client_certificate, certificate, firewall, address, way = (
    row(key, finds, partial(_on_the_way, id=key)) for key, finds in _FINDS.items()
)


@check("mirror-logs-not-kept")
def not_kept(facts: Facts) -> Iterator[Spot]:
    """Mirrors are on, and copies of jobs that have succeeded go at once: their logs with them."""
    if facts.mirrors is not None and not facts.settings.retention.finished:
        yield Spot("the daemon's settings", "mirrorPods.logs is on, and retention.finished is 0")
