"""The server's TLS: the front proxy's certificate, and no other, is believed."""

from __future__ import annotations

import attrs

from multikueue.core.model.names import Json
from multikueued.logserver.frontproxy import FrontProxy
from multikueued.serving.caller_tls import CallerTls


@attrs.define(eq=False)
class FrontTls(CallerTls):
    """Of a server that the front proxy calls."""

    front: FrontProxy | None = attrs.field(default=None, init=False)
    """Whom to believe; None: not known yet, so nobody."""

    def take(self, config_map: Json) -> None:
        """See `CallerTls.take`."""
        self.believe(FrontProxy.read(config_map))

    def believe(self, front: FrontProxy) -> None:
        """Believe this front proxy from now on, and no other; raises as `take`."""
        self.trust(front.authorities)
        self.front = front
