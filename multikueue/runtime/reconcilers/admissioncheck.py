"""AdmissionChecks: say whether Kueue may rely on them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import datetime

import attrs

from multikueue.core.action import Action
from multikueue.core.admissioncheck import active_condition
from multikueue.core.conditions import condition, conditions, says_the_same, updated
from multikueue.core.kinds import ADMISSION_CHECK
from multikueue.core.names import ObjectKey
from multikueue.core.objects import dig, resource_version
from multikueue.errors import NotFound
from multikueue.runtime.home import Home


@attrs.define(eq=False)
class AdmissionCheckReconciler:
    """Keeps the Active condition of our AdmissionChecks."""

    home: Home
    clock: Callable[[], datetime]

    async def reconcile(self, key: ObjectKey) -> Action:
        """See `Reconciler`."""
        check = self.home.checks.get(key)
        if check is None or dig(check, "spec", "controllerName") != self.home.controller_name:
            return Action.done()
        known = {cluster["metadata"]["name"]: cluster for cluster in self.home.clusters.values()}
        wanted = active_condition(check, self.home.config_of(key.name), known, self.clock())
        if says_the_same(condition(check, "Active"), wanted):
            return Action.done()
        patch = {
            "metadata": {"resourceVersion": resource_version(check)},
            "status": {"conditions": updated(conditions(check), wanted)},
        }
        with contextlib.suppress(NotFound):  # deleted meanwhile
            await self.home.client.merge_patch(ADMISSION_CHECK, key, patch, subresource="status")
        return Action.done()
