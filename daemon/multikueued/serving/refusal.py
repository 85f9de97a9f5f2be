"""Why a request is not served."""

from __future__ import annotations


class RefusedError(Exception):
    """A request is not served; `code` is the HTTP status.

    kubectl shows the text for `logs` of a kubelet with 400, 403, 500 and 502 only; with 404, 409, 429, 503 and 504 it
    has a sentence of its own.
    """

    def __init__(self, code: int, message: str, retry_after: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.retry_after = retry_after
        """Seconds; 0: nothing is said of that."""
