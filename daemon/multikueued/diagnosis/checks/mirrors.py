"""Checks of mirrors: whether the manager's API server reaches who answers for their logs, and why it does not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Final

import attrs

from multikueued.diagnosis.facts import Facts
from multikueued.diagnosis.findings import Spot, check, row


@attrs.frozen
class Cause:
    """Why an API server gets no answer."""

    pattern: re.Pattern[str]
    """Of what it says."""
    what: str

    def fits(self, said: str) -> bool:
        """Whether it is this one."""
        return self.pattern.search(said) is not None


def _cause(pattern: str, what: str) -> Cause:
    return Cause(re.compile(pattern, re.IGNORECASE), what)


CLIENT: Final = _cause(
    # A handshake that we end is an EOF to an API server, or a reset.
    r"tls: (certificate required|bad certificate|unknown certificate|handshake failure)|HTTP 40[13]|unauthorized"
    r"|\bEOF\b|connection reset|broken pipe",
    "it shows no certificate by which it is known as an API server",
)
CERTIFICATE: Final = _cause(r"x509:|tls: failed to verify", "it does not accept our certificate")
FIREWALL: Final = _cause(
    r"i/o timeout|deadline exceeded|timed out|no answer within|HTTP 504", "no packet comes back from our address"
)
ADDRESS: Final = _cause(
    r"no such host|connection refused|no route to host|network is unreachable|not allowed|address",
    "nobody listens at our address",
)
CAUSES: Final = (CLIENT, CERTIFICATE, FIREWALL, ADDRESS)
"""In the order in which they are looked for."""


def _spots(facts: Facts, cause: Cause | None) -> Iterator[Spot]:
    way = facts.mirrors.way if facts.mirrors is not None else None
    if way is None or not way.said or next((known for known in CAUSES if known.fits(way.said)), None) is not cause:
        return
    what = cause.what if cause is not None else "who answers is not multikueue"
    yield Spot(f"Node {way.node}", f"{what}: {way.said}", {"node": way.node})


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


client_certificate = row(
    "mirror-client-certificate",
    "The manager's API server shows no client certificate to kubelets, or one that may not ask them",
    partial(_spots, cause=CLIENT),
)
certificate = row(
    "mirror-certificate",
    "The manager's API server does not accept the certificate of who answers for mirrors",
    partial(_spots, cause=CERTIFICATE),
)
firewall = row(
    "mirror-firewall",
    "The manager's API server gets no packet back from who answers for mirrors",
    partial(_spots, cause=FIREWALL),
)
address = row(
    "mirror-address", "Nobody listens at the address of who answers for mirrors", partial(_spots, cause=ADDRESS)
)
way = row(
    "mirror-way",
    "Something else than multikueue answers for mirrors, or it is not known what",
    partial(_spots, cause=None),
)


@check("mirror-logs-not-kept")
def not_kept(facts: Facts) -> Iterator[Spot]:
    """Mirrors are on, and copies of jobs that have succeeded go at once: their logs with them."""
    if facts.mirrors is not None and not facts.settings.retention.finished:
        yield Spot("the daemon's settings", "mirrorPods.logs is on, and retention.finished is 0")
