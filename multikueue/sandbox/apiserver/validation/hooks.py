"""Which builtin kinds are defaulted or checked by code of their own: one row per kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import attrs

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.kinds.resources import DEFINITIONS, NAMESPACES, PODS, GroupResource
from multikueue.sandbox.apiserver.status_errors import Cause
from multikueue.sandbox.apiserver.validation.defaults import (
    fill_job,
    fill_pod,
    fill_set,
    label_namespace,
    prepare_job,
    prepare_namespace,
    prepare_pod,
    tolerate_trouble,
)
from multikueue.sandbox.apiserver.validation.definitions import create_definition, update_definition
from multikueue.sandbox.apiserver.validation.rules_events import check_event, check_event_update
from multikueue.sandbox.apiserver.validation.rules_job_status import check_job_status
from multikueue.sandbox.apiserver.validation.rules_jobs import check_job, check_job_update
from multikueue.sandbox.apiserver.validation.rules_pods import check_pod, check_pod_update, check_set, check_set_update
from multikueue.sandbox.apiserver.validation.secrets import (
    check_config_map,
    check_config_map_update,
    check_secret,
    check_secret_update,
    fill_secret,
    keep_secret_type,
)


def _accept(*_objects: Json) -> list[Cause]:
    return []


@attrs.frozen
class Hooks:
    """What a kind does besides what all kinds do.

    Attributes:
        fill: sets defaults, whenever an object comes in or is read.
        prepare: completes a new object, and `adjust` one that replaces another; neither owns what it sets.
        create: what is wrong with a new object.
        update: what is wrong with a replacement of the main resource.
        status: what is wrong with a replacement of the status.
    """

    fill: Callable[[Json], object] = _accept
    prepare: Callable[[Json], object] = _accept
    adjust: Callable[[Json, Json], object] = _accept
    create: Callable[[Json], list[Cause]] = _accept
    update: Callable[[Json, Json], list[Cause]] = _accept
    status: Callable[[Json, Json], list[Cause]] = _accept

    @property
    def fills(self) -> bool:
        """Whether there are defaults at all."""
        return self.fill is not _accept


_NONE = Hooks()
_BUILTIN: Mapping[GroupResource, Hooks] = MappingProxyType(
    {
        PODS: Hooks(fill_pod, prepare_pod, tolerate_trouble, create=check_pod, update=check_pod_update),
        ("batch", "jobs"): Hooks(
            fill_job, prepare_job, create=check_job, update=check_job_update, status=check_job_status
        ),
        ("apps", "deployments"): Hooks(fill_set, create=check_set, update=check_set_update),
        ("apps", "statefulsets"): Hooks(fill_set, create=check_set, update=check_set_update),
        ("events.k8s.io", "events"): Hooks(create=check_event, update=check_event_update),
        ("", "secrets"): Hooks(fill_secret, adjust=keep_secret_type, create=check_secret, update=check_secret_update),
        ("", "configmaps"): Hooks(create=check_config_map, update=check_config_map_update),
        NAMESPACES: Hooks(prepare=prepare_namespace, adjust=label_namespace),
        DEFINITIONS: Hooks(create=create_definition, update=update_definition),
    }
)


def hooks_of(resource: GroupResource) -> Hooks:
    """The hooks of a kind; empty ones for most."""
    return _BUILTIN.get(resource, _NONE)
