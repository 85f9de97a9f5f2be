"""The limits of a client."""

from __future__ import annotations

import attrs

from multikueue.kube.http.response_limits import AnswerLimits


@attrs.frozen
class ClientOptions:
    """The limits of a client. All times are in seconds."""

    deadline: float = 30.0
    """For a call with all its retries, from when it is sent. The API server's own limit is 60 s."""
    connection_wait: float = 30.0
    """Until a call has a connection: all may be in use. Then it fails with `NotSent`."""
    connect_deadline: float = 10.0
    """To resolve the server's name, and then again to connect with TLS."""
    connections: int = 32
    """Concurrent calls. HTTP/1.1 needs a connection for each, and each connection costs a TLS handshake. A dozen keep
    an API server on the same network busy; 32 allow 300 calls a second to one that is 100 ms away."""
    user_agent: str = "multikueue"
    """What comes before a `/` in it is noted as the field manager of our writes. It must not be a name of a controller
    of jobs (`core/model/writers.py`): a job whose status such a one has written is not dispatched."""
    impersonate: str = ""
    """The user as whom each request is made; the identity of the credentials must be allowed to. Empty: itself."""
    limits: AnswerLimits = attrs.field(factory=AnswerLimits)
    """How much of an answer is read."""
