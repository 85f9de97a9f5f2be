"""Keeping the MutatingWebhookConfiguration: the URL, the kinds, and the trusted authorities."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

import anyio
import attrs

from multikueue.core.admission.registration import Registration
from multikueue.core.model.kinds import MUTATING_WEBHOOKS
from multikueue.core.model.names import Resource
from multikueue.errors import ApiError
from multikueue.logs import get_logger
from multikueue.protocols import Writer

FIELD_MANAGER: Final = "multikueue-webhook"
PERIOD: Final = 600.0
"""Seconds between two resyncs: they undo changes by others, and renew certificates."""
RETRY: Final = 10.0
"""Seconds after which what failed is tried again."""
PAUSE: Final = 2.0
"""Seconds between two writes at least: two controllers that undo each other's writes must not loop tightly."""

log = get_logger(__name__)


class Authorities(Protocol):
    """Where the certificate comes from."""

    @property
    def changed(self) -> anyio.Event:
        """Set with the next change after which to register again."""

    async def renew(self, trusted: str) -> str:
        """Renew certificates; return the authorities for the webhook to name, as PEM, if it is to name them.

        Args:
            trusted: what it has named so far.

        Raises:
            ApiError: it could not be written.
        """


@attrs.define(eq=False)
class WebhookRegistrar:
    """Registers the webhook. Only the replica that leads runs it; all of them serve."""

    client: Writer
    registration: Registration
    kinds: Iterable[Resource]
    """The job kinds to be asked about."""
    authorities: Authorities

    async def run(self) -> None:
        """Keep the webhook registered until cancelled. Failures are logged and retried."""
        trusted, complaint = "", ""
        while True:
            changed = self.authorities.changed  # taken before registering, so that no change is missed
            try:
                bundle = await self._register(trusted)
            except ApiError as error:
                if str(error) != complaint:  # once until it changes
                    log.warning("cannot register the webhook", configuration=self.registration.name, error=str(error))
                complaint, delay = str(error), RETRY
            else:
                if bundle != trusted or complaint:
                    log.info("webhook registered", configuration=self.registration.name)
                trusted, complaint, delay = bundle, "", PERIOD
            with anyio.move_on_after(delay):
                await anyio.sleep(PAUSE)
                await changed.wait()

    async def _register(self, trusted: str) -> str:
        """Register it; return the authorities that it names.

        Args:
            trusted: the authorities that this process has named before.
        """
        authorities = await self.authorities.renew(trusted)
        wanted = self.registration.configuration(self.kinds, authorities)
        await self.client.apply(MUTATING_WEBHOOKS, wanted, field_manager=FIELD_MANAGER)
        return authorities
