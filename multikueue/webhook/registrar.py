"""Keeping the MutatingWebhookConfiguration: who is asked about which kinds, and whose certificates are trusted."""

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
"""Seconds between two resyncs: what somebody else changed is mended, and what gets old renewed."""
RETRY: Final = 10.0
"""Seconds after which what failed is tried again."""
PAUSE: Final = 2.0
"""Seconds between two looks at least: somebody else may write the same objects, which must not become a race."""

log = get_logger(__name__)


class Authorities(Protocol):
    """Where the certificate comes from."""

    @property
    def changed(self) -> anyio.Event:
        """Set with the next change that needs another look."""
        ...

    async def renew(self, trusted: str) -> str:
        """Renew what gets old; return the authorities that API servers must trust, as PEM, if we are to tell them.

        Args:
            trusted: what they have been told so far.

        Raises:
            ApiError: it could not be written.
        """
        ...


@attrs.define(eq=False)
class WebhookRegistrar:
    """Registers the webhook. Only the replica that leads runs it; all of them serve."""

    client: Writer
    registration: Registration
    kinds: Iterable[Resource]
    """The job kinds to be asked about."""
    authorities: Authorities

    async def run(self) -> None:
        """Do so until cancelled. It never gives up: failures are told and tried again."""
        trusted, complaint = "", ""
        while True:
            changed = self.authorities.changed  # taken before looking, so that nothing is missed in between
            try:
                told = await self._register(trusted)
            except ApiError as error:
                if str(error) != complaint:  # once until it changes
                    log.warning("cannot register the webhook", configuration=self.registration.name, error=str(error))
                complaint, delay = str(error), RETRY
            else:
                if told != trusted or complaint:
                    log.info("webhook registered", configuration=self.registration.name)
                trusted, complaint, delay = told, "", PERIOD
            with anyio.move_on_after(delay):
                await anyio.sleep(PAUSE)
                await changed.wait()

    async def _register(self, trusted: str) -> str:
        """Register it; return the authorities that API servers have been told to trust.

        Args:
            trusted: what they had been told before by this process.
        """
        authorities = await self.authorities.renew(trusted)
        wanted = self.registration.configuration(self.kinds, authorities)
        await self.client.apply(MUTATING_WEBHOOKS, wanted, field_manager=FIELD_MANAGER)
        return authorities
