"""A token that another part of this process provides: a built-in provider that watches a Secret."""

from __future__ import annotations

import attrs

from multikueue.errors import Unauthorized
from multikueue.kube.credentials.credential import Credential
from multikueue.kube.kubeconfig_document import is_token


@attrs.define(eq=False)
class TokenHolder:
    """A token that somebody else keeps up to date, in the field `holder` of a `ClusterConfig`.

    * A new token is used from the next request on; a watch that is open keeps its own until it ends.
    * A holder equals only itself. Keep one for as long as the token comes from the same place: then the configuration
      stays equal, and no connection is made anew for a new token.
    * Once `refused`, a holder made anew for a new token makes a new configuration, which is tried at once: the
      connection does not wait for its back-off.
    """

    name: str
    """Where the token comes from, for errors: `Secret ns/name`."""
    _held: Credential = attrs.field(factory=Credential, init=False)
    _missing: str = attrs.field(default="is not read yet", init=False)
    _refused: Credential | None = attrs.field(default=None, init=False)

    def __repr__(self) -> str:
        return f"<TokenHolder {self.name}: {self._missing or 'has a token'}>"

    @property
    def refused(self) -> bool:
        """Whether a server has answered the token at hand with 401."""
        return bool(self._held.token) and self._refused == self._held

    def set(self, token: str) -> None:
        """Take a new token. White space around it is ignored; a text that cannot be sent is no token."""
        word = token.strip()
        if not word or not is_token(word):
            self.clear("does not hold a token")
        elif word != self._held.token:
            self._held, self._missing = Credential(word), ""

    def clear(self, why: str) -> None:
        """Have no token any more.

        Args:
            why: what is said of `name`, as `does not exist`. It is shown to users.
        """
        self._held, self._missing = Credential(), why

    async def credential(self, refused: Credential | None = None) -> Credential:
        """See `CredentialSource`."""
        if refused is not None:
            self._refused = refused
        if self._missing:
            raise Unauthorized(f"getting credentials: {self.name} {self._missing}")
        return self._held
