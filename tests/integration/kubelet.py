"""Plays the kubelets: there are no nodes, so pods would stay `Pending`."""

from __future__ import annotations

from collections.abc import Mapping

import anyio
import attrs

from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueue.errors import ApiError
from tests.controlplane.pods import Phase
from tests.integration.view import POD, Changes, View, job_of

_AGAIN = 0.5  # seconds until a write that failed is tried again


@attrs.define(eq=False)
class Kubelet:
    """Lets every pod of every cluster run, until a test says how the pods of a Job end."""

    views: Mapping[str, View]
    changes: Changes
    broken: set[str] = attrs.field(factory=set, init=False)
    """Clusters on which no pod starts."""
    _ends: dict[str, Phase] = attrs.field(factory=dict, init=False)

    def end(self, job: str, phase: Phase) -> None:
        """From now on the pods of this Job end like this."""
        self._ends[job] = phase
        self.changes.tell()

    async def run(self) -> None:
        """Set phases until cancelled."""
        while True:
            changed = self.changes.next()  # before looking, so that nothing is missed
            for name, view in self.views.items():
                for pod, phase in self._due(view, starts=name not in self.broken):
                    await _set_phase(view, pod, phase)
            with anyio.move_on_after(_AGAIN):
                await changed.wait()

    def _due(self, view: View, *, starts: bool) -> list[tuple[Json, Phase]]:
        wanted = [(pod, self._next(pod, starts=starts)) for pod in view.all(POD)]
        return [(pod, phase) for pod, phase in wanted if phase is not None]

    def _next(self, pod: Json, *, starts: bool) -> Phase | None:
        phase = dig(pod, "status", "phase")
        if phase == "Pending":
            return "Running" if starts else None
        return self._ends.get(job_of(pod)) if phase == "Running" else None


async def _set_phase(view: View, pod: Json, phase: Phase) -> None:
    ready = {"type": "Ready", "status": "True" if phase == "Running" else "False"}
    try:
        await view.client.merge_patch(
            POD, ObjectKey.of(pod), {"status": {"phase": phase, "conditions": [ready]}}, subresource="status"
        )
    except ApiError:
        return  # gone, or the server is away: the next pass looks again
