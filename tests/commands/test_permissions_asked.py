"""Which of its permissions on the manager the doctor asks about, of what may be there before the daemon."""

from __future__ import annotations

from typing import Any

import pytest

from multikueue.core.model.kinds import MUTATING_WEBHOOKS, SECRET
from multikueue.core.model.names import ObjectKey, Resource
from multikueued.doctor.cluster_reader import MANAGER, Sight
from multikueued.doctor.installation import Daemon
from multikueued.doctor.manager_reader import read_manager
from multikueued.settings.file import parse_settings
from tests.commands.breaking import Person
from tests.commands.diagnosing import Reviewing
from tests.runtime.fleet import Fleet, now

REGISTRATION, CERTIFICATE = "mutatingwebhookconfigurations", "secrets"


class Prepared(Reviewing):
    """A manager on which these objects are there."""

    there: frozenset[Resource] = frozenset()

    async def exists(self, resource: Resource, key: ObjectKey) -> bool:
        return resource in self.there


@pytest.mark.parametrize(
    ("there", "created"),
    [
        ({MUTATING_WEBHOOKS, SECRET}, set()),
        ({MUTATING_WEBHOOKS}, {CERTIFICATE}),
        ({SECRET}, {REGISTRATION}),
        (set(), {REGISTRATION, CERTIFICATE}),
    ],
    ids=["both are there", "no certificate", "no registration", "neither"],
)
async def test_the_right_to_create_is_asked_for_what_is_not_there_alone(
    there: set[Resource], created: set[str]
) -> None:
    """The chart makes both. Where one of them was lacking, the right to create the other was asked for, too."""
    fleet = await Fleet.connected("worker1")
    client: Any = Prepared(Person(fleet.manager), {})
    client.there = frozenset(there)
    settings = parse_settings("{namespace: kueue-system, webhook: {enabled: true}}")
    daemon = Daemon(settings, True, "system:serviceaccount:kueue-system:multikueue", None, ())
    facts, _ = await read_manager(Sight(client, MANAGER, "ask somebody"), daemon, now())
    asked = {permission.resource for permission in facts.permissions if permission.verb == "create"}
    assert asked & {REGISTRATION, CERTIFICATE} == created
