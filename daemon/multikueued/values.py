"""Reading one value of the settings file: what may stand there, and what is said about what may not."""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final, Literal, get_args

import cattrs

from multikueue.runtime.plugins import BUILT_IN, installed_dispatchers
from multikueued.config import ControllerName, LabelValue, ObjectName, Port, ServerUrl
from multikueued.dispatching import DispatcherName, RoundLength, StepSize
from multikueued.durations import parse_duration
from multikueued.frameworks import FrameworkName, framework_names

_CONTROLLER_NAME: Final = re.compile(r"(?=.{1,63}\Z)[a-z0-9]([-.a-z0-9]*[a-z0-9])?/[-._~/A-Za-z0-9]+")
_CONTROLLER_NAME_TOLD: Final = (
    "a controller's name: use a domain and a path, as example.com/multikueue, of at most 63 characters"
)
_LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?")
_LABEL_VALUE_TOLD: Final = (
    "a label's value: use at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
)
_OBJECT_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_OBJECT_NAME_TOLD: Final = (
    "a name: use at most 63 lower-case letters, digits and '-', beginning and ending with a letter or digit"
)
_SERVER_URL: Final = re.compile(
    r"https://(?P<host>[a-z0-9]([-.a-z0-9]*[a-z0-9])?|\[[0-9a-f:.]+\])(:(?P<port>[0-9]{1,5}))?/?"
)
_KUEUES_DOMAIN: Final = "kueue.x-k8s.io/"
_SHORTEST_ROUND: Final = timedelta(seconds=1)


def register_values(converter: cattrs.Converter) -> None:
    """Teach a converter to read the settings' values; each error is a ValueError that says what to write."""
    converter.register_structure_hook_func(lambda kind: getattr(kind, "__origin__", None) is Literal, _choice)
    converter.register_structure_hook(bool, _exactly(bool, "true or false"))
    converter.register_structure_hook(str, _exactly(str, "a text: put it in quotes"))
    converter.register_structure_hook(timedelta, _duration)
    converter.register_structure_hook(ControllerName, _text(_CONTROLLER_NAME, _CONTROLLER_NAME_TOLD))
    converter.register_structure_hook(LabelValue, _text(_LABEL_VALUE, _LABEL_VALUE_TOLD))
    converter.register_structure_hook(ObjectName, _text(_OBJECT_NAME, _OBJECT_NAME_TOLD))
    converter.register_structure_hook(Port, _port)
    converter.register_structure_hook(ServerUrl, _server_url)
    converter.register_structure_hook(DispatcherName, _dispatcher_name)
    converter.register_structure_hook(StepSize, _step_size)
    converter.register_structure_hook(RoundLength, _round_length)
    converter.register_structure_hook(FrameworkName, _framework_name)


def shown(value: Any) -> str:
    """A value as a message quotes it."""
    if value is None:
        return "an empty value"
    return f'"{value}"' if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


def _exactly(kind: type[Any], name: str) -> Callable[[Any, Any], Any]:
    def structure(value: Any, _: Any) -> Any:
        if type(value) is not kind:
            raise ValueError(f"{shown(value)} is not {name}")
        return value

    return structure


def _duration(value: Any, _: Any) -> timedelta:
    if type(value) in (int, float) and value != 0:
        raise ValueError(f'{value} lacks a unit: write it like "15m", "1m30s" or "500ms"')
    return parse_duration(str(value))


def _text(form: re.Pattern[str], told: str) -> Callable[[Any, Any], Any]:
    """For texts of one form; `told` says what another one cannot be, and how to write it."""

    def structure(value: Any, _: Any) -> Any:
        if not isinstance(value, str) or not form.fullmatch(value):
            raise ValueError(f"{shown(value)} cannot be {told}")
        return value

    return structure


def _port(value: Any, _: Any) -> Port:
    if type(value) is not int or not 0 <= value <= 65_535:
        raise ValueError(f"{shown(value)} is not a port: use 1 to 65535, or 0 for any free one")
    return Port(value)


def _server_url(value: Any, _: Any) -> ServerUrl:
    found = _SERVER_URL.fullmatch(value) if isinstance(value, str) else None
    if found is None or int(found["port"] or 443) > 65_535 or not _may_be_host(found["host"]):
        raise ValueError(f"{shown(value)} cannot be a server's address: write it like https://host.example.com:9443")
    return ServerUrl(value)


def _may_be_host(host: str) -> bool:
    try:
        return not host.startswith("[") or bool(ipaddress.IPv6Address(host[1:-1]))
    except ValueError:
        return False


def _choice(value: Any, kind: Any) -> Any:
    if value not in get_args(kind):
        raise ValueError(f"{shown(value)} is not one of {', '.join(get_args(kind))}")
    return value


def _dispatcher_name(value: Any, _: Any) -> DispatcherName:
    known = (*BUILT_IN, *installed_dispatchers())
    if value in known:
        return DispatcherName(value)
    if not isinstance(value, str) or not _CONTROLLER_NAME.fullmatch(value):
        brought = ", ".join(known[len(BUILT_IN) :]) or "none"
        raise ValueError(
            f"{shown(value)} cannot be a dispatcher's name: use {' or '.join(BUILT_IN)}, one that an installed package "
            f"brings ({brought}), or for another controller its domain and a path, as example.com/dispatcher, of at "
            "most 63 characters"
        )
    if value.startswith(_KUEUES_DOMAIN):
        close = difflib.get_close_matches(value, known, n=1)
        advice = f'did you mean "{close[0]}"?' if close else f"there are {' and '.join(known)}"
        raise ValueError(f'Kueue has no dispatcher "{value}": {advice}')
    return DispatcherName(value)


def _step_size(value: Any, _: Any) -> StepSize:
    if type(value) is not int or value < 1:
        raise ValueError(f"{shown(value)} is not a number of workers: use 1 or more")
    return StepSize(value)


def _round_length(value: Any, kind: Any) -> RoundLength:
    length = _duration(value, kind)
    if length < _SHORTEST_ROUND:
        raise ValueError(f"{shown(value)} is too short for a round: use 1s or more")
    return RoundLength(length)


def _framework_name(value: Any, _: Any) -> FrameworkName:
    known = framework_names()
    if value not in known:
        close = difflib.get_close_matches(str(value), known, n=2)
        advice = f'did you mean "{" or ".join(close)}"?' if close else f"there are {', '.join(known)}"
        raise ValueError(f"{shown(value)} is not a job kind that can be dispatched: {advice}")
    return FrameworkName(value)
