"""Checks of Kueue's own controller on the manager, and of job kinds there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from multikueue import AVAILABLE, JobKind
from multikueue.core.model import workloads
from multikueue.core.model.conditions import timestamp
from multikueue.core.model.labels import CONTROLLER_NAME
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from multikueue.core.model.worker_kueue import OLDEST, version_of
from multikueue.core.model.workloads import CheckState
from multikueued.diagnosis.facts import Facts, KueueFacts
from multikueued.diagnosis.findings import Spot, check
from multikueued.reports.typenames import title
from multikueued.settings import frameworks

_GATE: Final = re.compile(r"(?:^|,)\s*MultiKueue=(true|false)", re.IGNORECASE)
AUTO: Final = f"({frameworks.AUTO})"
"""In the source of a kind that the settings do not name."""
_KUEUE: Final = "kueue"
"""The field manager of Kueue's controllers."""


def gate_is_on(kueue: KueueFacts) -> bool | None:
    """Whether Kueue's own MultiKueue is switched on; None: it cannot be told. Without a word it is on."""
    for argument in kueue.arguments or ():
        name, _, value = argument.partition("=")
        if name.lstrip("-") == "feature-gates":
            setting = _GATE.search(value)
            return True if setting is None else setting[1].lower() == "true"
    if kueue.arguments is None or kueue.configuration is None:
        return None
    set_to = dig(kueue.configuration, "featureGates", "MultiKueue")
    return set_to is not False


@check("gate-on")
def gate_on(facts: Facts) -> Iterator[Spot]:
    """Kueue's own MultiKueue is on, and the daemon has Kueue's `controllerName`."""
    if str(facts.settings.controller_name) == CONTROLLER_NAME and gate_is_on(facts.kueue):
        yield Spot("Deployment kueue-controller-manager", "its feature gate MultiKueue is on (without a word it is)")


@check("gate-seems-on")
def kueue_writes(facts: Facts) -> Iterator[Spot]:
    """The gate cannot be seen, and Kueue wrote a worker's status last."""
    if gate_is_on(facts.kueue) is not None:
        return  # that is certain, and this is a sign only
    for worker, writers in sorted(facts.status_writers.items()):
        kueues = max((writer.at for writer in writers if writer.manager == _KUEUE), default=None)
        ours = max((writer.at for writer in writers if writer.manager != _KUEUE), default=None)
        if kueues is not None and (ours is None or kueues > ours):
            why = f"Kueue's own controller wrote its status last, at {timestamp(kueues)}"
            yield Spot(f"MultiKueueCluster {worker}", why)


@check("kueue-too-old")
def old_kueue(facts: Facts) -> Iterator[Spot]:
    """Kueue is older than 0.15."""
    version = version_of(facts.kueue.image)
    if version is not None and version < OLDEST:
        yield Spot("Deployment kueue-controller-manager", f"its image is {facts.kueue.image}")


@check("kind-not-served")
def kinds_not_served(facts: Facts) -> Iterator[Spot]:
    """A kind in the settings is not served by the manager."""
    for kind in facts.kinds:
        by_name = AUTO not in kind.source  # `auto` stands for those that are served
        if kind.resource.gvk in facts.lacking and not kind.workload_only and by_name:
            yield Spot("the manager", f"it does not serve {kind.resource}, which the settings enable")


@check("kind-without-managed-by")
def kinds_without_managed_by(facts: Facts) -> Iterator[Spot]:
    """The definition of a kind lacks the field that says who runs a job."""
    for kind in facts.kinds:
        path, definition = kind.delegation.path, facts.definitions.get(kind.resource.gvk)
        if path is None or definition is None or kind.workload_only:
            continue
        if not _has_field(_schema(kind, definition), [str(part) for part in path]):
            field = ".".join(str(part) for part in path)
            where = f"CustomResourceDefinition {kind.resource.qualified}"
            heeding = kind.delegation.heeding
            effect = f": {heeding.of_missing}" if heeding is not None else ""
            yield Spot(where, f"its version {kind.resource.gvk.version} has no field {field}{effect}")


def _schema(kind: JobKind, definition: Json) -> Json:
    versions: Iterable[Json] = dig(definition, "spec", "versions") or []
    version = next((version for version in versions if version.get("name") == kind.resource.gvk.version), {})
    return dig(version, "schema", "openAPIV3Schema") or {}


def _has_field(schema: Any, path: list[str]) -> bool:
    """Whether a schema may hold a field; where it leaves fields unknown, it may."""
    for name in path:
        if not isinstance(schema, dict) or not schema or schema.get("x-kubernetes-preserve-unknown-fields"):
            return True
        properties = schema.get("properties")
        if properties is None:
            return True
        if name not in properties:
            return False
        schema = properties[name]
    return True


@check("starts-here")
def starting_here(facts: Facts) -> Iterator[Spot]:
    """Pods, or kinds made of them, run on a worker and have a check that is Ready."""
    if facts.settings.pods.check == "Ready":
        return
    pods = {kind.resource.gvk for kind in AVAILABLE if kind.keeps_check_pending}
    for chain in facts.objects.every_chain:
        workload, behind = chain.workload, workloads.owner(chain.workload)
        if workloads.is_finished(workload) or not workloads.cluster_name(workload):
            continue
        pod_backed = workloads.has_members(workload) or (behind is not None and behind.gvk in pods)
        if pod_backed and chain.check_state is CheckState.READY:
            yield Spot(title(workload), "it runs on a worker as pods, and its check is Ready")
