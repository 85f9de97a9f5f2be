"""Who talks to API servers in a benchmark: each has a token of its own, so that requests can be told apart."""

from __future__ import annotations

from collections import Counter
from typing import Final, TypeAlias

CONTROLLER: Final = "controller"
"""The controller under test: on the manager, and in the kubeconfigs of the workers."""
WORKER_SIMULATOR: Final = "worker-simulator"
MANAGER_KUEUE: Final = "manager-kueue"
USER: Final = "user"
"""Submits jobs."""
OBSERVER: Final = "observer"
"""Sets up, and watches everything."""
COMPONENTS: Final = (CONTROLLER, WORKER_SIMULATOR, MANAGER_KUEUE, USER, OBSERVER)

Requests: TypeAlias = Counter[tuple[str, str, str]]
"""How many requests one API server has had, by component, verb and resource (`jobs.batch`)."""

READS: Final = frozenset({"get", "list"})
WATCHES: Final = frozenset({"watch"})
BACKGROUND: Final = frozenset({"leases.coordination.k8s.io"})
"""What is asked for as time passes, not for work."""
