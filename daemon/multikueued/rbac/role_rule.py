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
        for one in rules
        for group in one.get("apiGroups") or ()
        for resource in one.get("resources") or ()
        for verb in one.get("verbs") or ()
    }


def merged(rules: Iterable[Json]) -> list[Json]:
    """The same permissions, with the resources of a group that have the same verbs in one rule."""
    found: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for one in rules:
        names, verbs = tuple(one.get("resourceNames", ())), tuple(one["verbs"])
        resources = found.setdefault((one["apiGroups"][0], verbs, names), [])
        resources += [resource for resource in one["resources"] if resource not in resources]
    return [rule(group, resources, verbs, names) for (group, verbs, names), resources in found.items()]
