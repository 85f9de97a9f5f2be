"""Kueue's names of job kinds, as `integrations.frameworks` lists them."""

from __future__ import annotations

from typing import Final

from multikueue import AVAILABLE, JobKind

ALIASES = {"deployment": "pod"}
"""Kinds that are dispatched as another: the pods of a Deployment are queued and dispatched one by one."""
AUTO: Final = "auto"
"""In `integrations.frameworks`: every built-in kind that the manager serves, but those made of pods."""
UNSUPPORTED: Final = {"sparkoperator.k8s.io/sparkapplication": "nothing delegates a SparkApplication"}
"""Kinds that Kueue knows and that cannot be dispatched, and why."""


def framework_names() -> list[str]:
    """The names in `integrations.frameworks` that have an effect."""
    names = {kind.framework for kind in AVAILABLE if kind.framework}
    return sorted(names | {alias for alias, name in ALIASES.items() if name in names} | {AUTO})


def rows_of(framework: str) -> list[JobKind]:
    """The rows of one of Kueue's names; none of what stands for no kind of its own."""
    wanted = ALIASES.get(framework, framework)
    return [kind for kind in AVAILABLE if kind.framework == wanted]
