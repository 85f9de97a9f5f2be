"""Who may ask, and how often they did."""

from __future__ import annotations

from collections import Counter

from multikueue.sandbox.apiserver.faults import Call

ANONYMOUS = "system:anonymous"


class Access:
    """Tokens and their users, and a count of requests.

    Attributes:
        tokens: user by token; change it while the server runs to revoke or add one. None: everyone may ask.
        requests: how many requests came in by (user, verb, resource), the refused and the failed ones too.
    """

    def __init__(self, tokens: dict[str, str] | None) -> None:
        self.tokens = tokens
        self.requests: Counter[tuple[str, str, str]] = Counter()

    def user_of(self, token: str) -> str | None:
        """Whose a token is; None if nobody's."""
        if self.tokens is None:
            return ANONYMOUS
        return self.tokens.get(token)

    def token_of(self, user: str) -> str | None:
        """A token of a user."""
        return next((token for token, name in (self.tokens or {}).items() if name == user), None)

    def count(self, call: Call) -> None:
        """Note a request."""
        self.requests[call.user, call.verb, call.resource] += 1
