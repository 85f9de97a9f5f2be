"""Where copies come from, for workers whose namespaces take those of some tenants only."""

from __future__ import annotations

import attrs

from multikueue.core.model.kinds import NAMESPACE
from multikueue.core.model.labels import FROM_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, uid
from multikueue.protocols import Reader


@attrs.frozen
class Origin:
    """A manager that has a name, as the policy of `multikueue rbac worker --binding` asks for it."""

    manager: str
    """Its name."""
    client: Reader = attrs.field(repr=False)
    """Of the manager: it may get namespaces."""

    async def of(self, namespace: str) -> str:
        """What copies say that come from a namespace: `MANAGER/NAMESPACE/UID`. One that is deleted and made again has
        another UID, so it is read each time.

        Raises:
            ApiError: it cannot be read.
        """
        return f"{self.manager}/{namespace}/{uid(await self.client.get(NAMESPACE, ObjectKey('', namespace)))}"


def coming_from(copy: Json, origin: str) -> Json:
    """A copy that says where it comes from."""
    annotations = {**annotations_of(copy), FROM_ANNOTATION: origin}
    return {**copy, "metadata": {**copy["metadata"], "annotations": annotations}}
