"""Webhooks and policies of a cluster that refuse what the daemon, or anybody, asks for."""

from __future__ import annotations

from typing import Any, Final

from multikueue.core.model.labels import ORIGIN_LABEL
from multikueue.core.model.names import Json
from multikueue.core.model.objects import labels_of
from multikueue.sandbox.apiserver import Registry, StatusError
from multikueue.sandbox.apiserver.status_errors import REASONS
from multikueue.sandbox.apiserver.storage.cluster import WriteOptions
from multikueue.sandbox.apiserver.verbs.deleting import DeleteOptions
from multikueue.sandbox.apiserver.verbs.updating import Target
from tests.simulation.weather import Link

PLAIN: Final = WriteOptions()


class GuardedRegistry(Registry):
    """A cluster's API with webhooks that refuse deletions of copies, and statuses of other jobs, whoever asks."""

    link: Link
    """Whose weather says which kinds are kept, and which statuses refused."""

    def patch(self, target: Target, format_: str, body: Any, options: WriteOptions = PLAIN) -> tuple[Json, bool]:
        """See `Registry`."""
        code = self.link.weather.refusals.get(target.row.plural) if target.subresource == "status" else None
        obj = self._find(target) if code is not None else None
        if code is not None and obj is not None and ORIGIN_LABEL not in labels_of(obj):
            message = f"{target.row.qualified} {target.name!r} is forbidden: a policy denied the request"
            raise StatusError(code, REASONS[code], message)
        return super().patch(target, format_, body, options)

    def delete(self, target: Target, options: DeleteOptions) -> tuple[Json, bool]:
        """See `Registry`."""
        obj = self._find(target) if target.row.plural in self.link.weather.keeps else None
        if obj is not None and ORIGIN_LABEL in labels_of(obj):
            raise StatusError(403, REASONS[403], 'admission webhook "keep.example.com" denied the request')
        return super().delete(target, options)

    def _find(self, target: Target) -> Json | None:
        entry = self.cluster.store.get((target.row.group, target.row.plural), target.key)
        return None if entry is None else entry.obj
