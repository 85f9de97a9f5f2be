"""Reads the settings file: YAML in, `Settings` out, or one message that lists all errors."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, get_type_hints

import attrs
import cattrs
import yaml
from cattrs.gen import make_dict_structure_fn, override

from multikueue.adapters.declaration import Declaration
from multikueue.core.model.name_lists import did_you_mean
from multikueue.errors import SettingsError
from multikueue.kube.kubernetes_yaml import KubernetesLoader
from multikueued.settings.config import IntegrationSettings, Settings
from multikueued.settings.dispatcher import dispatcher_remarks
from multikueued.settings.documents import read_text, reading
from multikueued.settings.frameworks import AUTO
from multikueued.settings.inventory import ocm_contradictions, ocm_remarks
from multikueued.settings.kinds import kind_contradictions, kind_remarks
from multikueued.settings.kueue_configuration import Remark, Translated, translated
from multikueued.settings.profiles import profile_contradictions
from multikueued.settings.sections import dependency_contradictions, mirror_remarks
from multikueued.settings.values import Hook, camel, is_list, register_values, shown

NAMESPACE_FILE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
"""Where kubelet writes the pod's own namespace."""
KUEUE_NAMESPACE: Final = "kueue-system"
LONGEST: Final = 1_000
"""Characters that are said of one setting that cannot be used: whoever fills a template may write any value."""
DEFAULT_ORIGIN: Final = Settings().origin


@attrs.frozen
class Loaded:
    """Settings, and what in their file was passed over."""

    settings: Settings
    remarks: tuple[Remark, ...] = ()


def load_settings(path: Path | None, *, namespace_file: Path = NAMESPACE_FILE) -> Loaded:
    """Read the settings file; without one, the defaults. It may be Kueue's own Configuration.

    Args:
        path: the file.
        namespace_file: holds the pod's own namespace, for settings that name none.

    Raises:
        SettingsError: the file cannot be read or used; the message names every wrong setting and what to do.
    """
    loaded = Loaded(Settings()) if path is None else parse(read_text(path), source=str(path))
    if loaded.settings.namespace:
        return loaded
    own = attrs.evolve(loaded.settings, namespace=_own_namespace(namespace_file))
    return attrs.evolve(loaded, settings=own)


def parse_settings(text: str, *, source: str = "settings") -> Settings:
    """Read settings from YAML, whatever in it is passed over.

    Raises:
        SettingsError: see `load_settings`.
    """
    return parse(text, source=source).settings


def parse(text: str, *, source: str) -> Loaded:
    """Read settings from YAML.

    Raises:
        SettingsError: see `load_settings`.
    """
    with reading(source):
        document = yaml.load(text, _Loader)  # a SafeLoader
    file = translated(document) if isinstance(document, dict) else Translated({} if document is None else document)
    if file.complaints:
        raise SettingsError(_listed(source, list(file.complaints)))
    settings = _structured(file, source)
    made = (
        kind_remarks(settings),
        dispatcher_remarks(settings),
        ocm_remarks(settings.ocm, settings.cluster_profile),
        mirror_remarks(settings.mirror_pods),
    )
    remarks = (attrs.evolve(remark, setting=file.as_written(remark.setting)) for remark in itertools.chain(*made))
    return Loaded(settings, (*file.remarks, *remarks))


def _structured(file: Translated, source: str) -> Settings:
    try:
        settings = _CONVERTER.structure(file.document, Settings)
    except (cattrs.BaseValidationError, ValueError) as error:
        raise SettingsError(_listed(source, [file.as_written(line) for line in _complaints(error)])) from error
    if contradictions := [file.as_written(line) for line in _contradictions(settings)]:
        raise SettingsError(_listed(source, contradictions))
    return settings


def _contradictions(settings: Settings) -> Iterator[str]:
    """Settings that cannot be used together: the setting, and why."""
    try:
        settings.leader_election.lease_settings()
    except SettingsError as error:
        yield f"leaderElection: {error}"
    yield from kind_contradictions(settings)
    yield from profile_contradictions(settings.cluster_profile)
    if settings.pods.check == "Ready" and not (settings.webhook.enabled and settings.webhook.failure_policy == "Fail"):
        why = "without the webhook's scheduling gate a pod would run on the manager as well"
        advice = "set webhook.enabled: true and webhook.failurePolicy: Fail, or keep Pending"
        yield f"pods.check: {why}: {advice}"
    if settings.serving.metrics.secure and not settings.serving.metrics.cert_dir:
        advice = "name the folder with tls.crt and tls.key, or leave serving.metrics.secure out"
        yield f"serving.metrics.certDir: there is no certificate for HTTPS: {advice}"
    yield from ocm_contradictions(settings.ocm)
    yield from dependency_contradictions(settings.dependencies)
    for number, entry in enumerate(settings.inventory):
        for name, value in (("selector", entry.selector), ("config", entry.config)):
            if not value:
                yield f"inventory[{number}].{name}: it is missing: each entry needs a selector and a config"
    listed = [entry.config for entry in settings.inventory if entry.config]
    for name in dict.fromkeys(name for name in listed if listed.count(name) > 1):
        yield f'inventory: two entries fill the config "{name}": write one selector for both, or name two configs'
    if settings.manager_name == DEFAULT_ORIGIN:
        yield f'managerName: "{DEFAULT_ORIGIN}" tells no manager from another: give each a name of its own'
    yield from _shared_ports(settings)


def _shared_ports(settings: Settings) -> Iterator[str]:
    """Two servers of the daemon on one port: the second could not start."""
    metrics, webhook, mirrors = settings.serving.metrics, settings.webhook, settings.mirror_pods
    taken = {settings.serving.port: "serving.port"}
    for name, port, on in (
        ("serving.metrics.port", metrics.port, metrics.secure),
        ("webhook.port", webhook.port, webhook.enabled),
        ("mirrorPods.port", mirrors.port, mirrors.logs),
    ):
        if on and port and port in taken:
            yield f"{name}: {port} is {taken[port]} as well: give each a port of its own, or 0 for any free one"
        if on:
            taken[port] = name


def written(declaration: Declaration) -> dict[str, Any]:
    """A declared kind as settings have it."""
    said = attrs.asdict(declaration)
    return {camel(name): value for name, value in said.items() if value is not None}


def _own_namespace(file: Path) -> str:
    if not os.access(file, os.R_OK):  # not in a pod
        return KUEUE_NAMESPACE
    return read_text(file).strip() or KUEUE_NAMESPACE


class _Loader(KubernetesLoader):
    """Refuses a setting that is written twice. YAML would silently keep the last."""

    distinct = True


def _group(cls: type[Any], converter: cattrs.Converter) -> Hook:
    """The hook of a group of settings: its keys in camelCase, and no others."""
    fields, types = attrs.fields(cls), get_type_hints(cls)
    lists = {camel(field.name) for field in fields if is_list(types[field.name])}
    empty = {camel(field.name) for field in fields if field.default in ("", None)}
    renamed = {field.name: override(rename=camel(field.name)) for field in fields}
    # `**renamed` is keyed by the fields' names: cattrs' signature cannot say so.
    structure: Any = make_dict_structure_fn
    read: Hook = structure(cls, converter, _cattrs_forbid_extra_keys=True, **renamed)

    def says_nothing(key: str, item: Any) -> bool:
        """Whether it is a list of which every line is commented out, or the default, also as `null`."""
        return (item is None and key in (lists | empty)) or (item == "" and key in empty)

    def checked(value: Any, _: Any) -> Any:
        value = {} if value is None else value  # every line of the group is commented out
        if not isinstance(value, dict):
            raise ValueError(f"{shown(value)} is not a group of settings: write its settings below it, indented")
        return read({str(key): item for key, item in value.items() if not says_nothing(key, item)}, cls)

    return checked


def _integrations(group: Hook) -> Hook:
    """The hook of the job kinds: `auto` needs no list."""

    def read(value: Any, kind: Any) -> Any:
        alone = isinstance(value, dict) and value.get("frameworks") == AUTO
        return group({**value, "frameworks": [AUTO]} if alone else value, kind)

    return read


def _declaration(group: Hook) -> Hook:
    """The hook of a declared kind: a group of settings, or a name alone as in Kueue."""

    def read(value: Any, kind: Any) -> Any:
        if isinstance(value, str):
            return Declaration(name=value)
        if not isinstance(value, dict) or "name" not in value:
            raise ValueError("it has no name: write it like name: PipelineRun.v1.tekton.dev")
        return group(value, kind)

    return read


def _complaints(error: BaseException, path: str = "") -> Iterator[str]:
    """The errors: each setting's place, and what to write."""
    if isinstance(error, cattrs.ForbiddenExtraKeysError):
        known = [camel(field.name) for field in attrs.fields(error.cl)]
        for key in sorted(error.extra_fields):
            hint = did_you_mean(key, known) or f"the settings here are {', '.join(known)}"
            yield f"{path}.{key}: there is no such setting: {hint}".lstrip(".")
    elif isinstance(error, cattrs.BaseValidationError):
        for nested in error.exceptions:
            yield from _complaints(nested, f"{path}{_step_of(nested)}".lstrip("."))
    else:
        yield f"{path or 'the file'}: {error}"


def _step_of(error: BaseException) -> str:
    """The setting of its group, or the entry of its list, that an error is about."""
    for note in getattr(error, "__notes__", []):
        if isinstance(note, cattrs.AttributeValidationNote):
            return f".{camel(note.name)}"
        if isinstance(note, cattrs.IterableValidationNote):
            return f"[{note.index}]"
    return ""


def _listed(source: str, complaints: list[str]) -> str:
    complaints = [_without_middle(complaint) for complaint in complaints]
    if len(complaints) == 1:
        return f"{source}: {complaints[0]}"
    return "\n".join([f"{source}: {len(complaints)} settings cannot be used", *(f"  {line}" for line in complaints)])


def _without_middle(complaint: str) -> str:
    """At a bounded length: a complaint begins with the place, ends with what to write, and has the value in between."""
    if len(complaint) <= LONGEST:
        return complaint
    return f"{complaint[: LONGEST // 4]} ... {complaint[-LONGEST * 3 // 4 :]}"


_CONVERTER: Final = cattrs.Converter(detailed_validation=True)
_CONVERTER.register_structure_hook_factory(attrs.has, _group)
register_values(_CONVERTER)
_CONVERTER.register_structure_hook(Declaration, _declaration(_group(Declaration, _CONVERTER)))
_CONVERTER.register_structure_hook(IntegrationSettings, _integrations(_group(IntegrationSettings, _CONVERTER)))
