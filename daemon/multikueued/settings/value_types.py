"""The types of settings that are more than a text, a number or a duration: each says which values it takes."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Annotated, Any, Final

from multikueue.core.dispatchers.scored.profile import Profile, parse_profiles
from multikueue.core.inventory.settings import DEFAULT_VALIDITY, MIN_VALIDITY
from multikueue.core.model.name_lists import alike, did_you_mean
from multikueue.core.model.names import OBJECT_NAME, SHORT_NAME
from multikueue.core.model.quantities import exact
from multikueue.core.model.written_values import LABEL_VALUE, is_label_selector
from multikueue.core.workload.seen.graces import LONGEST_GRACE
from multikueue.runtime.plugins import BUILT_IN, installed_dispatchers
from multikueued.settings.frameworks import UNSUPPORTED, framework_names
from multikueued.settings.values import TEXT, SettingRule, checked, duration, shown

_CONTROLLER_NAME: Final = re.compile(r"(?=.{1,63}\Z)[a-z0-9]([-.a-z0-9]*[a-z0-9])?/[-._~/A-Za-z0-9]+")
_SERVER_URL: Final = re.compile(
    r"https://([a-z0-9]([-.a-z0-9]*[a-z0-9])?|\[(?P<ipv6>[0-9a-f:.]+)\])(:(?P<port>[0-9]{1,5}))?/?"
)
_NOBODY_ELSES: Final = ("kueue.x-k8s.io/", "multikueue.dev/")
"""Domains of dispatchers that are built in."""


MIN_SIZE: Final = 1 << 20
"""Bytes. With less even plain pages of a list would have to be asked for in pieces."""


def _text(form: re.Pattern[str], error: str) -> SettingRule:
    return checked(lambda text: form.fullmatch(text) is not None, error, TEXT)


def _name_of(what: str) -> SettingRule:
    letters = "lower-case letters, digits and '-', beginning and ending with a letter or digit"
    return _text(SHORT_NAME, f"cannot be {what}: use at most 63 {letters}")


def _long_name_of(what: str) -> SettingRule:
    letters = "lower-case letters, digits, '-' and '.', with a letter or digit at both ends and beside each '.'"
    return _text(OBJECT_NAME, f"cannot be {what}: use at most 253 {letters}")


def _length(holds: Callable[[timedelta], bool], error: str) -> SettingRule:
    return checked(holds, error, duration)


def _is_server_url(value: Any) -> bool:
    url = _SERVER_URL.fullmatch(value) if isinstance(value, str) else None
    if url is None or int(url["port"] or 443) > 65_535:
        return False
    try:
        return url["ipv6"] is None or bool(ipaddress.IPv6Address(url["ipv6"]))
    except ValueError:
        return False


def _is_ip_address(value: Any) -> bool:
    try:
        return isinstance(value, str) and (not value or bool(ipaddress.ip_address(value)))
    except ValueError:
        return False


def _byte_size(value: Any) -> int:
    try:
        return int(exact(str(value).strip())[0])
    except ValueError:
        raise ValueError(f"{shown(value)} is not a size: write it like 16Mi") from None


def _dispatcher_name(value: Any) -> Any:
    """As in Kueue any text names another controller; but not what is almost, or a part of, a dispatcher's name."""
    known = (*BUILT_IN, *installed_dispatchers())
    text = isinstance(value, str) and "/" not in value
    if value in known or (text and not any(value in name for name in known) and not alike(value, known)):
        return value
    if not isinstance(value, str) or not _CONTROLLER_NAME.fullmatch(value):
        brought = ", ".join(known[len(BUILT_IN) :]) or "none"
        raise ValueError(
            f"{shown(value)} cannot be a dispatcher's name: use {' or '.join(BUILT_IN)}, one that an installed package "
            f"brings ({brought}), or for another controller its domain and a path, as example.com/dispatcher, of at "
            "most 63 characters"
        )
    if value.startswith(_NOBODY_ELSES):
        hint = did_you_mean(value, known) or f"there are {' and '.join(known)}"
        raise ValueError(f'there is no dispatcher "{value}": {hint}')
    return value


def _framework_name(value: Any) -> Any:
    known = framework_names()
    if value not in known and value not in UNSUPPORTED:
        hint = (
            did_you_mean(str(value), known, most=2)
            or f"there are {', '.join(known)}; any other kind is declared in externalFrameworks"
        )
        raise ValueError(f"{shown(value)} is not a job kind that can be dispatched: {hint}")
    return value


ControllerName = Annotated[
    str,
    _text(
        _CONTROLLER_NAME,
        "cannot be a controller's name: use a domain and a path, as example.com/multikueue, of at most 63 characters",
    ),
]
"""A domain and a path, `example.com/dispatcher`: what Kubernetes accepts in a job's `managedBy`."""
LabelValue = Annotated[
    str,
    _text(
        LABEL_VALUE,
        "cannot be a label's value: use at most 63 letters, digits, '-', '_' and '.', beginning and ending with a "
        "letter or digit",
    ),
]
"""A text that Kubernetes accepts as a label's value."""
ObjectName = Annotated[str, _name_of("a name")]
"""A text that Kubernetes accepts as the name of a namespace or a Service, and of what is named after `name`."""
LongName = Annotated[str, _long_name_of("a name")]
"""The same for a Secret, or what else may have dots, as cert-manager's `logs.example.com-tls`."""
AccountName = Annotated[str, _long_name_of("the name of a ServiceAccount")]
"""The same for a ServiceAccount."""
ConfigName = Annotated[str, _name_of("the name of a MultiKueueConfig that a check refers to")]
"""The same for a MultiKueueConfig that an AdmissionCheck can name."""
Selector = Annotated[
    str,
    checked(
        lambda value: isinstance(value, str) and is_label_selector(value),
        "is not a label selector: write it as for kubectl get -l, like accelerator=nvidia-tesla-t4,region in (eu,us)",
    ),
]
"""A label selector as kubectl takes it."""
Port = Annotated[
    int,
    checked(
        lambda value: type(value) is int and 0 <= value <= 65_535,
        "is not a port: use 1 to 65535, or 0 for any free one",
    ),
]
"""A TCP port; 0 for any free one."""
ServerUrl = Annotated[
    str, checked(_is_server_url, "cannot be a server's address: write it like https://host.example.com:9443")
]
"""`https://HOST:PORT`."""
IpAddress = Annotated[
    str,
    checked(_is_ip_address, "is not an IP address: API servers reach a Node by nothing else, write it like 10.0.0.7"),
]
"""An IPv4 or IPv6 address; or empty."""
SignerName = Annotated[
    str,
    checked(
        lambda value: isinstance(value, str) and (not value or _CONTROLLER_NAME.fullmatch(value) is not None),
        "cannot be a signer's name: use a domain and a path, as kubernetes.io/kubelet-serving",
    ),
]
"""The `signerName` of a CertificateSigningRequest; or empty."""
ByteSize = Annotated[
    int, checked(lambda size: size >= MIN_SIZE, f"is too small: use {MIN_SIZE >> 20}Mi or more", _byte_size)
]
"""Bytes, written as Kubernetes writes quantities: `16Mi`."""
Count = Annotated[int, checked(lambda value: type(value) is int and value >= 1, "is not a number: use 1 or more")]
"""How many; at least 1."""
StepSize = Annotated[
    int, checked(lambda value: type(value) is int and value >= 1, "is not a number of workers: use 1 or more")
]
"""How many workers; at least 1."""
RoundLength = Annotated[
    timedelta, _length(lambda length: length >= timedelta(seconds=1), "is too short for a round: use 1s or more")
]
"""How long a round lasts; at least a second."""
GraceLimit = Annotated[
    timedelta,
    _length(lambda length: length <= LONGEST_GRACE, "is too long to keep quota for pods that end: use 5m or less"),
]
"""At most five minutes."""
TokenValidity = Annotated[
    timedelta,
    _length(
        lambda length: MIN_VALIDITY <= length <= DEFAULT_VALIDITY,
        "is not between 24h and 168h: a token must outlive a night, and no more",
    ),
]
"""From a day to a week."""
DispatchProfiles = Annotated[Mapping[str, Profile], SettingRule(partial(parse_profiles, path="profiles"))]
"""Ways in which the scored dispatcher chooses, by name."""
DispatcherName = Annotated[str, SettingRule(_dispatcher_name)]
"""One of Kueue's two dispatchers, ours, one of an installed package, or another controller's: as in Kueue any text."""
FrameworkName = Annotated[str, SettingRule(_framework_name)]
"""Kueue's name of a kind that is built into it: `batch/job`."""
