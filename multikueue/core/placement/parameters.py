"""The parameters of a placement check: which Placement it stands for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import attrs

from multikueue.core.model.kinds import OCM_GROUP, PLACEMENT
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from multikueue.core.placement.settings import PLACEMENT_CONTROLLER

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@attrs.frozen
class BadParameters:
    """The check cannot be used as it is written."""

    why: str
    """What is wrong in `spec.parameters`, and what to write."""


def is_placement_check(check: Json | None) -> bool:
    """Whether an AdmissionCheck stands for a Placement."""
    return bool(dig(check, "spec", "controllerName") == PLACEMENT_CONTROLLER)


def placement_name(check: Json) -> str | BadParameters:
    """The name of the Placement, which is also that of the MultiKueueConfig."""
    parameters = dig(check, "spec", "parameters")
    faults = list(_faults(parameters))
    return BadParameters("; ".join(faults)) if faults else str(parameters["name"])


def name_or_empty(check: Json) -> str:
    """The name of the Placement; empty if the parameters cannot be used."""
    found = placement_name(check)
    return found if isinstance(found, str) else ""


def _faults(parameters: Any) -> Iterator[str]:
    if not parameters or not isinstance(parameters, dict):
        yield f"spec.parameters is missing: name the Placement there (apiGroup {OCM_GROUP}, kind Placement, name)"
        return
    wanted = (("apiGroup", OCM_GROUP), ("kind", PLACEMENT.gvk.kind))
    for field, value in wanted:
        if parameters.get(field) != value:
            yield f'spec.parameters.{field} is "{parameters.get(field) or ""}": it must be "{value}"'
    name = parameters.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        yield f'spec.parameters.name is "{name or ""}": it must be the name of a Placement, without dots'
