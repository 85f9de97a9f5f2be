"""Of the status of a worker's pod what is shown: fields that are known, each of its form and within its bound. Pure.

Whoever runs a worker decides what its API server says. Kubelets bound what containers say, nobody bounds the rest; and
what is read in a terminal must not move its cursor. It is looked at once, where a pod comes in.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from multikueue.core.model.conditions import parse_timestamp
from multikueue.core.model.names import Json
from multikueue.core.model.objects import shortened
from multikueue.core.model.outside_text import without_controls
from multikueue.core.model.shape import is_amount

LONGEST: Final = 4_096
"""Bytes of a message: kubelets keep as many of what a container leaves at its end, and API servers show conditions
whole that are shorter."""
WORD: Final = 253
"""Bytes of a word for machines, as a reason, or of a name."""
MANY: Final = 256
"""Entries of a list or a map: no pod has as many containers, conditions or resources."""
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)").fullmatch
_UNFIT: Final = object()
"""Stands for what has another form than its field."""

Form: TypeAlias = Any
"""A function that makes of a value what is shown, or `_UNFIT`; `[form]` for a list; or fields and their forms."""


def text(most: int) -> Callable[[Any], Any]:
    """The form of a text: lines and tabs stay, other characters that are not seen do not; what is longer is cut."""

    def shown(value: Any) -> Any:
        return shortened(without_controls(value[: most + 1]), most) if type(value) is str else _UNFIT

    return shown


def _moment(value: Any) -> Any:
    return value if type(value) is str and _TIME(value) and parse_timestamp(value) else _UNFIT


def _number(value: Any) -> Any:
    return value if type(value) is int and -(1 << 31) <= value < 1 << 31 else _UNFIT


def _flag(value: Any) -> Any:
    return value if type(value) is bool else _UNFIT


def _amounts(value: Any) -> Any:
    if type(value) is not dict:
        return _UNFIT
    entries = [*value.items()][:MANY]
    return {name: amount for name, amount in entries if len(name) <= WORD and _is_quantity(amount)}


def _is_quantity(value: Any) -> bool:
    return type(value) is str and 0 < len(value) <= WORD and is_amount(value)


_WORD: Final = text(WORD)
_MESSAGE: Final = text(LONGEST)
_STATE: Final[Form] = {
    "waiting": {"reason": _WORD, "message": _MESSAGE},
    "running": {"startedAt": _moment},
    "terminated": {
        "exitCode": _number,
        "signal": _number,
        "reason": _WORD,
        "message": _MESSAGE,
        "startedAt": _moment,
        "finishedAt": _moment,
        "containerID": _WORD,
    },
}
_CONTAINERS: Final[Form] = [
    {
        "name": _WORD,
        "state": _STATE,
        "lastState": _STATE,
        "ready": _flag,
        "started": _flag,
        "restartCount": _number,
        "image": text(LONGEST),
        "imageID": text(LONGEST),
        "containerID": _WORD,
        "allocatedResources": _amounts,
        "resources": {"requests": _amounts, "limits": _amounts},
        "allocatedResourcesStatus": [{"name": _WORD, "resources": [{"resourceID": _WORD, "health": _WORD}]}],
        "stopSignal": _WORD,
    }
]
_CONDITION: Final[Form] = {
    "type": _WORD,
    "status": _WORD,
    "reason": _WORD,
    "message": _MESSAGE,
    "lastProbeTime": _moment,
    "lastTransitionTime": _moment,
}
SHOWN: Final[Form] = {
    "phase": _WORD,
    "reason": _WORD,
    "message": _MESSAGE,
    "startTime": _moment,
    "conditions": [_CONDITION],
    "initContainerStatuses": _CONTAINERS,
    "containerStatuses": _CONTAINERS,
    "ephemeralContainerStatuses": _CONTAINERS,
}
"""What is left out beside: what the manager's API server refuses, as `qosClass` and claims, and addresses, which are
somebody else's there. A field of a later Kubernetes is shown once it is here."""


def shown_status(status: Json | None) -> Json:
    """What is shown of a status; one that was shown comes out as it is."""
    return _fields(status or {}, SHOWN)


def _fields(value: Json, forms: Form) -> Json:
    shown = {field: _shown(value[field], form) for field, form in forms.items() if field in value}
    return {field: entry for field, entry in shown.items() if entry is not _UNFIT}


def _shown(value: Any, form: Form) -> Any:
    if value is None:  # as `lastProbeTime` is
        return None
    if type(form) is dict:
        return _fields(value, form) if type(value) is dict else _UNFIT
    if type(form) is list:
        return _list(value, form[0]) if type(value) is list else _UNFIT
    return form(value)


def _list(value: list[Any], form: Form) -> list[Any]:
    shown = (_shown(entry, form) for entry in value[:MANY])
    return [entry for entry in shown if entry is not _UNFIT and entry is not None]
