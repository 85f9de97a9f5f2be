"""All rows that come with the library, and which setting names a kind."""

from __future__ import annotations

from multikueue.adapters import appwrapper, job, pod, ray, sets, training
from multikueue.adapters.kind import JobKind
from multikueue.core.model.names import GVK

BUILTIN: tuple[JobKind, ...] = job.KINDS
"""The rows in use by default: the kind every cluster serves."""

AVAILABLE: tuple[JobKind, ...] = tuple(
    kind for module in (job, training, ray, appwrapper, pod, sets) for kind in module.KINDS
)
"""All rows that come with the library, for a registry of your own: every kind in it is watched on every worker."""


def setting_for(gvk: GVK) -> str:
    """What to do so that jobs of a kind are dispatched, in the words of the daemon's settings."""
    framework = next((kind.framework for kind in AVAILABLE if kind.resource.gvk == gvk), "")
    if framework:
        return f'add "{framework}" to integrations.frameworks'
    return f'declare "{gvk}" in multiKueue.externalFrameworks'
