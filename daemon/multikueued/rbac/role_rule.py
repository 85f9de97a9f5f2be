"""One rule of a role, and several merged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from multikueue.core.model.names import Json


def rule(group: str, resources: Sequence[str], verbs: Sequence[str], names: Sequence[str] = ()) -> Json:
    """One rule of a role; `names` restricts it to objects of these names."""
    made: Json = {"apiGroups": [group], "resources": [*resources], "verbs": [*verbs]}
    return {**made, "resourceNames": [*names]} if names else made


def allow(rules: Iterable[Json], wanted: Iterable[Json]) -> bool:
    """Whether rules of a role allow all that others do; names of single objects do not count."""
    return _granted(wanted) <= _granted(rules)


def _granted(rules: Iterable[Json]) -> set[tuple[str, str, str]]:
    return {
        (group, resource, verb)
        for role_rule in rules
        for group in role_rule.get("apiGroups") or ()
        for resource in role_rule.get("resources") or ()
        for verb in role_rule.get("verbs") or ()
    }


def merged(rules: Iterable[Json]) -> list[Json]:
    """The same permissions, with the resources of a group that have the same verbs in one rule."""
    by_verbs: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for role_rule in rules:
        names, verbs = tuple(role_rule.get("resourceNames", ())), tuple(role_rule["verbs"])
        resources = by_verbs.setdefault((role_rule["apiGroups"][0], verbs, names), [])
        resources += [resource for resource in role_rule["resources"] if resource not in resources]
    return [rule(group, resources, verbs, names) for (group, verbs, names), resources in by_verbs.items()]
