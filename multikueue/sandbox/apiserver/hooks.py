"""Which builtin kinds are defaulted or checked by code of their own: one row per kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import attrs

from multikueue.core.names import Json
from multikueue.sandbox.apiserver.defaults_crds import create_definition, update_definition
from multikueue.sandbox.apiserver.defaults_jobs import create_job, update_job
from multikueue.sandbox.apiserver.defaults_namespaces import create_namespace, label_namespace
from multikueue.sandbox.apiserver.defaults_pods import create_pod, update_pod
from multikueue.sandbox.apiserver.defaults_secrets import create_secret, update_secret
from multikueue.sandbox.apiserver.resources import DEFINITIONS, NAMESPACES, PODS, GroupResource
from multikueue.sandbox.apiserver.statuses import Cause


@attrs.frozen
class Hooks:
    """What a kind does on creation and on update of the main resource: change the object, return what is wrong."""

    create: Callable[[Json], list[Cause]] = lambda _new: []
    update: Callable[[Json, Json], list[Cause]] = lambda _old, _new: []


_NONE = Hooks()
_BUILTIN: Mapping[GroupResource, Hooks] = MappingProxyType(
    {
        PODS: Hooks(create_pod, update_pod),
        ("batch", "jobs"): Hooks(create_job, update_job),
        ("", "secrets"): Hooks(create_secret, update_secret),
        NAMESPACES: Hooks(create_namespace, label_namespace),
        DEFINITIONS: Hooks(create_definition, update_definition),
    }
)


def hooks_of(resource: GroupResource) -> Hooks:
    """The hooks of a kind; empty ones for most."""
    return _BUILTIN.get(resource, _NONE)
