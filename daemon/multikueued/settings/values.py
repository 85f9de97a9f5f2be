"""Reads one value of the settings file: which values are valid, and the error for others."""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, Final, Literal, TypeAlias, get_args

import cattrs
from cattrs.cols import list_structure_factory

from multikueue.core.inventory.settings import DEFAULT_VALIDITY, MIN_VALIDITY
from multikueue.core.model.quantities import exact
from multikueue.runtime.plugins import BUILT_IN, installed_dispatchers
from multikueued.run.kinds import UNSUPPORTED, framework_names
from multikueued.settings import config
from multikueued.settings import inventory as inventories
from multikueued.settings import leader as leader_settings

Hook: TypeAlias = Callable[[Any, Any], Any]
"""Reads a value as a type; raises ValueError with what to write instead."""

_CONTROLLER_NAME: Final = re.compile(r"(?=.{1,63}\Z)[a-z0-9]([-.a-z0-9]*[a-z0-9])?/[-._~/A-Za-z0-9]+")
_LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?")
_OBJECT_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_LABEL_KEY: Final = r"([a-z0-9]([-.a-z0-9]*[a-z0-9])?/)?[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?"
_REQUIREMENT: Final = (
    rf" *(!? *{_LABEL_KEY}|{_LABEL_KEY} *(==?|!=) *[-_.A-Za-z0-9]*|{_LABEL_KEY} +(not)?in *\([^()]*\)) *"
)
_SELECTOR: Final = re.compile(rf"{_REQUIREMENT}(,{_REQUIREMENT})*")
_SERVER_URL: Final = re.compile(
    r"https://([a-z0-9]([-.a-z0-9]*[a-z0-9])?|\[(?P<ipv6>[0-9a-f:.]+)\])(:(?P<port>[0-9]{1,5}))?/?"
)
_KUEUES_DOMAIN: Final = "kueue.x-k8s.io/"
_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION_PART: Final = re.compile(rf"(\d+\.?\d*|\.\d+)({'|'.join(_SECONDS)})(?![a-zµμ])")


MIN_SIZE: Final = 1 << 20
"""Bytes. With less even plain pages of a list would have to be asked for in pieces."""


def register_values(converter: cattrs.Converter) -> None:
    """Register the hooks of all values; each error is a ValueError that says what to write."""
    for kind, hook in _HOOKS.items():
        converter.register_structure_hook(kind, hook)
    converter.register_structure_hook_func(lambda kind: _origin(kind) is Literal, _choice)
    converter.register_structure_hook_func(lambda kind: _origin(kind) is dict, lambda value, _: value)
    converter.register_structure_hook_factory(is_list, _list_of)


def shown(value: Any) -> str:
    """A value as error messages show it."""
    if value is None:
        return "an empty value"
    return f'"{value}"' if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


def advice(value: object, known: Iterable[str], otherwise: str, *, most: int = 1) -> str:
    """What to write instead of an unknown name.

    Args:
        value: the name.
        known: the names there are.
        otherwise: the advice if none of them is similar.
        most: how many of them to suggest.
    """
    close = difflib.get_close_matches(str(value), known, n=most)
    return f'did you mean "{" or ".join(close)}"?' if close else otherwise


def is_list(kind: Any) -> bool:
    """Whether a setting of that type is a list."""
    return _origin(kind) is tuple


def _origin(kind: Any) -> Any:
    return getattr(kind, "__origin__", None)


def parse_duration(text: str) -> timedelta:
    """Read a duration as Go and Kubernetes write it, `15m`, `1m30s`, `1.5h`, `250ms`; none is negative.

    Raises:
        ValueError: it is not one.
    """
    if text == "0":
        return timedelta(0)
    seconds, position = 0.0, 0
    while part := _DURATION_PART.match(text, position):
        seconds += float(part[1]) * _SECONDS[part[2]]
        position = part.end()
    if position == 0 or position != len(text):
        raise ValueError(f'"{text}" is not a duration: write it like "15m", "1m30s" or "500ms"')
    try:
        return timedelta(seconds=seconds)
    except OverflowError:
        raise ValueError(f'"{text}" is too long a duration') from None


def _list_of(kind: Any, converter: cattrs.Converter) -> Hook:
    entries = list_structure_factory(kind, converter)

    def structure(value: Any, _: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise ValueError(f'{shown(value)} is not a list: begin each entry with "- "')
        return tuple(entries(value, kind))

    return structure


def _choice(value: Any, kind: Any) -> Any:
    value = str(value) if type(value) is int else value  # YAML reads 2024 as a number
    if value not in get_args(kind):
        raise ValueError(f"{shown(value)} is not one of {', '.join(get_args(kind))}")
    return value


def _checked(holds: Callable[[Any], bool], error: str) -> Hook:
    """A hook for values that are kept as they are. `error` is the message for others, after the value."""

    def structure(value: Any, _: Any) -> Any:
        if not holds(value):
            raise ValueError(f"{shown(value)} {error}")
        return value

    return structure


def _matches(form: re.Pattern[str]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and form.fullmatch(value) is not None


def _is_server_url(value: Any) -> bool:
    found = _SERVER_URL.fullmatch(value) if isinstance(value, str) else None
    if found is None or int(found["port"] or 443) > 65_535:
        return False
    try:
        return found["ipv6"] is None or bool(ipaddress.IPv6Address(found["ipv6"]))
    except ValueError:
        return False


def _duration(value: Any, _: Any) -> timedelta:
    if type(value) in (int, float) and value != 0:
        raise ValueError(f'{value} lacks a unit: write it like "15m", "1m30s" or "500ms"')
    return parse_duration(str(value))


def _byte_size(value: Any, _: Any) -> int:
    try:
        size = exact(str(value).strip())[0]
    except ValueError:
        raise ValueError(f"{shown(value)} is not a size: write it like 16Mi") from None
    if size < MIN_SIZE:
        raise ValueError(f"{shown(value)} is too small: use {MIN_SIZE >> 20}Mi or more")
    return int(size)


def _at_least(shortest: timedelta, complaint: str) -> Hook:
    def read(value: Any, kind: Any) -> timedelta:
        length = _duration(value, kind)
        if length < shortest:
            raise ValueError(f"{shown(value)} {complaint}")
        return length

    return read


def _token_validity(value: Any, kind: Any) -> timedelta:
    length = _duration(value, kind)
    if not MIN_VALIDITY <= length <= DEFAULT_VALIDITY:
        raise ValueError(f"{shown(value)} is not between 24h and 168h: a token must outlive a night, and no more")
    return length


def _dispatcher_name(value: Any, _: Any) -> Any:
    known = (*BUILT_IN, *installed_dispatchers())
    if value in known:
        return value
    if not isinstance(value, str) or not _CONTROLLER_NAME.fullmatch(value):
        brought = ", ".join(known[len(BUILT_IN) :]) or "none"
        raise ValueError(
            f"{shown(value)} cannot be a dispatcher's name: use {' or '.join(BUILT_IN)}, one that an installed package "
            f"brings ({brought}), or for another controller its domain and a path, as example.com/dispatcher, of at "
            "most 63 characters"
        )
    if value.startswith(_KUEUES_DOMAIN):
        hint = advice(value, known, f"there are {' and '.join(known)}")
        raise ValueError(f'Kueue has no dispatcher "{value}": {hint}')
    return value


def _kueues_dispatcher_name(value: Any, kind: Any) -> Any:
    """As in Kueue any text names another controller; but not what is almost, or a part of, a dispatcher's name."""
    known = (*BUILT_IN, *installed_dispatchers())
    text = isinstance(value, str) and "/" not in value
    if text and not any(value in name for name in known) and not difflib.get_close_matches(value, known, n=1):
        return value
    return _dispatcher_name(value, kind)


def _framework_name(value: Any, _: Any) -> Any:
    known = framework_names()
    if value not in known and value not in UNSUPPORTED:
        hint = advice(value, known, f"there are {', '.join(known)}", most=2)
        raise ValueError(f"{shown(value)} is not a job kind that can be dispatched: {hint}")
    return value


_object_name: Final = _checked(
    _matches(_OBJECT_NAME),
    "cannot be a name: use at most 63 lower-case letters, digits and '-', beginning and ending with a letter or digit",
)


_HOOKS: Final[Mapping[Any, Hook]] = {
    bool: _checked(lambda value: type(value) is bool, "is not true or false"),
    str: _checked(lambda value: type(value) is str, "is not a text: put it in quotes"),
    timedelta: _duration,
    config.ControllerName: _checked(
        _matches(_CONTROLLER_NAME),
        "cannot be a controller's name: use a domain and a path, as example.com/multikueue, of at most 63 characters",
    ),
    config.LabelValue: _checked(
        _matches(_LABEL_VALUE),
        "cannot be a label's value: use at most 63 letters, digits, '-', '_' and '.', beginning and ending with a "
        "letter or digit",
    ),
    config.ObjectName: _object_name,
    leader_settings.BesideName: _object_name,
    config.Port: _checked(
        lambda value: type(value) is int and 0 <= value <= 65_535,
        "is not a port: use 1 to 65535, or 0 for any free one",
    ),
    config.ServerUrl: _checked(
        _is_server_url, "cannot be a server's address: write it like https://host.example.com:9443"
    ),
    config.ByteSize: _byte_size,
    config.Count: _checked(lambda value: type(value) is int and value >= 1, "is not a number: use 1 or more"),
    config.StepSize: _checked(
        lambda value: type(value) is int and value >= 1, "is not a number of workers: use 1 or more"
    ),
    config.RoundLength: _at_least(timedelta(seconds=1), "is too short for a round: use 1s or more"),
    leader_settings.ProbeInterval: _at_least(
        timedelta(minutes=1), "is too short between two looks at a worker: use 1m or more"
    ),
    config.DispatcherName: _dispatcher_name,
    config.KueuesDispatcherName: _kueues_dispatcher_name,
    config.FrameworkName: _framework_name,
    inventories.TokenValidity: _token_validity,
    inventories.AccountName: _checked(
        _matches(_OBJECT_NAME),
        "cannot be the name of a ServiceAccount: use at most 63 lower-case letters, digits and '-'",
    ),
    inventories.ConfigName: _checked(
        _matches(_OBJECT_NAME),
        "cannot be the name of a MultiKueueConfig that a check refers to: use at most 63 lower-case letters, digits "
        "and '-', beginning and ending with a letter or digit",
    ),
    inventories.Selector: _checked(
        _matches(_SELECTOR),
        "is not a label selector: write it as for kubectl get -l, like accelerator=nvidia-tesla-t4,region in (eu,us)",
    ),
}
