"""Objects as YAML, for people and for `kubectl apply`."""

from __future__ import annotations

from collections.abc import Iterable

import yaml

from multikueue.core.model.names import Json
from multikueue.kube.kubernetes_yaml import KubernetesDumper


class _Dumper(KubernetesDumper):
    """Writes lists of words in one line."""


def _list(dumper: yaml.SafeDumper, value: list[object]) -> yaml.Node:
    flat = all(isinstance(item, str) for item in value)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=flat)


_Dumper.add_representer(list, _list)


def to_yaml(objects: Iterable[Json]) -> str:
    """These objects as documents of one YAML stream."""
    return yaml.dump_all(objects, Dumper=_Dumper, sort_keys=False, width=120, explicit_start=True)
