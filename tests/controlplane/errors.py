"""What can go wrong with a control plane; each message says what happened, where, and what to do.

ControlPlaneError
├── BinariesMissing   no kube-apiserver or etcd was found
├── BuildFailed       the binaries could not be built
├── ProcessEnded      a component exited by itself
├── NotReady          a component did not become ready in time
└── RequestFailed     a request that had to succeed did not
"""

from __future__ import annotations


class ControlPlaneError(Exception):
    """Base of all errors of the test control planes."""


class BinariesMissing(ControlPlaneError):
    """No binaries to run; the message says where they were looked for and how to get them."""


class BuildFailed(ControlPlaneError):
    """The binaries could not be built."""


class ProcessEnded(ControlPlaneError):
    """A component exited by itself; the message ends with the last lines of its log."""

    def __init__(self, name: str, code: int, log_tail: str) -> None:
        super().__init__(f"{name} exited with code {code}; the end of its log:\n{log_tail}")
        self.log_tail = log_tail

    @property
    def port_taken(self) -> bool:
        """Whether it ended because another process had taken its port."""
        return "address already in use" in self.log_tail


class NotReady(ControlPlaneError):
    """A component was not ready in time; the message ends with the last lines of its log."""


class RequestFailed(ControlPlaneError):
    """A request that had to succeed was answered with an error."""

    def __init__(self, request: str, status: int, body: object) -> None:
        super().__init__(f"{request} was answered {status}: {body}")
        self.status = status
