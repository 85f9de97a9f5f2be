"""Facts of mirrors that are not as they should be."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import attrs

from multikueued.diagnosis.facts import Facts, MirrorFacts, MirrorWay
from multikueued.settings.config import RetentionSettings, Settings
from multikueued.settings.sections import MirrorPodSettings
from tests.reports.doctor.healthy import healthy

NODE = "multikueue-worker1"
DIALLED = "manager: get nodes: error trying to reach service: "


def mirrored(said: str = "", **changed: Any) -> Facts:
    """With mirrors on, and what the API server says on the way to who answers for them."""
    settings = Settings(
        mirror_pods=MirrorPodSettings(logs=True, address="10.0.0.7"),
        retention=RetentionSettings(finished=timedelta(minutes=10)),
    )
    facts = MirrorFacts(True, MirrorWay(NODE, said))
    return healthy(settings=settings, mirrors=attrs.evolve(facts, **changed))


def mirror_cases() -> Iterator[tuple[str, Facts, str, str]]:
    """Of mirrors, and of the way to their logs."""
    where = f"Node {NODE}"
    yield "mirror-policy", mirrored(is_bounded=False), "ValidatingAdmissionPolicy multikueue-mirrors", "does not exist"
    yield "mirror-node", mirrored(way=MirrorWay(NODE, is_missing=True)), where, "it does not exist"
    for said in (
        "remote error: tls: certificate required",
        "manager: get nodes: HTTP 403",
        "HTTP 401",
        f"{DIALLED}EOF",
    ):
        yield "mirror-client-certificate", mirrored(said), where, "no certificate by which it is known"
    for said in (
        "tls: failed to verify certificate: x509: certificate signed by unknown authority",
        "tls: failed to verify certificate: x509: certificate is valid for 10.0.0.8, not 10.0.0.7",
    ):
        yield "mirror-certificate", mirrored(DIALLED + said), where, "does not accept our certificate"
    yield "mirror-firewall", mirrored(f"{DIALLED}dial tcp 10.0.0.7:10260: i/o timeout"), where, "no packet comes back"
    for said in (
        "dial tcp 10.0.0.7:10260: connect: connection refused",
        "dial tcp 10.0.0.7:10260: connect: no route to host",
        "dial tcp: lookup multikueue-worker1: no such host",
    ):
        yield "mirror-address", mirrored(DIALLED + said), where, "nobody listens at our address"
    yield "mirror-way", mirrored("it answers ok"), where, "who answers is not multikueue"
    gone = attrs.evolve(mirrored(), settings=attrs.evolve(mirrored().settings, retention=RetentionSettings()))
    yield "mirror-logs-not-kept", gone, "the daemon's settings", "retention.finished is 0"
