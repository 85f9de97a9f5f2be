"""AdmissionChecks: write whether they are active."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import attrs

from multikueue.core.config.admission_check import active_condition
from multikueue.core.machinery.action import Action
from multikueue.core.model.conditions import condition, conditions, says_the_same, updated
from multikueue.core.model.kinds import ADMISSION_CHECK
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.objects import dig
from multikueue.runtime.manager_cluster import ManagerCluster


@attrs.define(eq=False)
class AdmissionCheckReconciler:
    """Keeps the Active condition of our AdmissionChecks."""

    manager: ManagerCluster
    clock: Callable[[], datetime]

    async def reconcile(self, key: ObjectKey) -> Action:
        """See `Reconciler`."""
        check = self.manager.checks.get(key)
        if check is None or dig(check, "spec", "controllerName") != self.manager.controller_name:
            return Action.done()
        known = {cluster["metadata"]["name"]: cluster for cluster in self.manager.clusters.values()}
        wanted = active_condition(check, self.manager.config_of(key.name), known, self.clock())
        if not says_the_same(condition(check, "Active"), wanted):
            await self.manager.write_conditions(ADMISSION_CHECK, check, updated(conditions(check), wanted))
        return Action.done()
