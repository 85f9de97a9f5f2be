"""What the sandbox's manager would refuse is found before anything is started."""

from __future__ import annotations

from collections.abc import Iterable

from multikueue.core.model.names import Json
from multikueue.errors import SettingsError
from multikueue.sandbox.apiserver import Registry, StatusError
from multikueue.sandbox.kinds import AVAILABLE, SandboxKind, definition


class Rehearsal:
    """The API of one cluster, without HTTP and without anybody who works on its objects.

    Args:
        kinds: what can be created there.
    """

    def __init__(self, kinds: Iterable[SandboxKind] = AVAILABLE) -> None:
        self._registry = Registry(garbage_collection=False)
        for kind in kinds:
            try:
                self._registry.type_of(kind.resource)
            except StatusError:  # not built in
                self._registry.create_object(definition(kind))

    def create(self, obj: Json, where: str) -> None:
        """Create an object, for once and for all that follow.

        Raises:
            SettingsError: the server refuses it; the message starts with `where`.
        """
        try:
            self._registry.create_object(obj)
        except StatusError as error:
            raise SettingsError(f"{where}: {error.message}") from error
