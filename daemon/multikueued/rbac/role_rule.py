"""One rule of a role, and several merged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig


def rule(group: str, resources: Sequence[str], verbs: Sequence[str], names: Sequence[str] = ()) -> Json:
    """One rule of a role; `names` restricts it to objects of these names."""
    made: Json = {"apiGroups": [group], "resources": [*resources], "verbs": [*verbs]}
    return {**made, "resourceNames": [*names]} if names else made


def allow(rules: Iterable[Json], wanted: Iterable[Json]) -> bool:
    """Whether rules of a role allow all that others do; names of single objects do not count."""
    return _granted(wanted) <= _granted(rules)


def verbs_of(role: Json | None) -> set[str]:
    """The verbs of a role's rules, which a worker may send in any form."""
    listed = dig(role, "rules")
    return {verb for role_rule in (listed if isinstance(listed, list) else ()) for verb in _texts(role_rule, "verbs")}


def _granted(rules: Iterable[Json]) -> set[tuple[str, str, str]]:
    return {
        (group, resource, verb)
        for role_rule in rules
        for group in _texts(role_rule, "apiGroups")
        for resource in _texts(role_rule, "resources")
        for verb in _texts(role_rule, "verbs")
    }


def _texts(role_rule: Json, field: str) -> list[str]:
    """What a rule says, which a worker may send in any form: what is no text grants nothing."""
    listed = dig(role_rule, field)
    return [text for text in listed if isinstance(text, str)] if isinstance(listed, list) else []


def merged(rules: Iterable[Json]) -> list[Json]:
    """The same permissions, with the resources of a group that have the same verbs in one rule."""
    by_verbs: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for role_rule in rules:
        names, verbs = tuple(role_rule.get("resourceNames", ())), tuple(role_rule["verbs"])
        resources = by_verbs.setdefault((role_rule["apiGroups"][0], verbs, names), [])
        resources += [resource for resource in role_rule["resources"] if resource not in resources]
    return [rule(group, resources, verbs, names) for (group, verbs, names), resources in by_verbs.items()]
