"""What is said when the manager cluster does not give what nothing can be decided without."""

from __future__ import annotations

import attrs

from multikueue.core.model.names import Resource
from multikueue.kube.informer_status import InformerStatus
from multikueue.logs import get_logger

log = get_logger(__name__)


@attrs.define(eq=False)
class RequiredKind:
    """A kind on the manager. It warns once that the kind is refused, and again after it was given."""

    resource: Resource
    _refused: bool = attrs.field(default=False, init=False)

    def __call__(self, state: InformerStatus) -> None:
        """Hear how the cache of that kind is going."""
        if state.refused and not self._refused:
            advice = "is Kueue installed there, with its CRDs, and may this identity list and watch them?"
            if not self.resource.gvk.group:
                advice = "may this identity list and watch them?"
            log.warning("cannot work without it", resource=str(self.resource), error=state.last_error, advice=advice)
        self._refused = state.refused
