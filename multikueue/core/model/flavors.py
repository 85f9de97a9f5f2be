"""Which flavors of a worker the pods of a pod set may use: Kueue's own rule, by labels, taints and tolerations.

What is not known excludes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Final

import attrs

from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig, name_of
from multikueue.core.model.shape import flavor_flaw, has_name, pods_flaw

MOST_DEMANDS: Final = 256
"""Requirements and tolerations of one pod set that are looked at; with more, any flavor counts as one it may use."""
MOST_MARKS: Final = 24
"""Labels, taints and tolerations of one flavor, likewise. Kueue allows no more."""
_NUMBER: Final = re.compile(r"[-+]?[0-9]{1,18}")
_EXCLUDING: Final = ("NoSchedule", "NoExecute")


@attrs.frozen
class Requirement:
    """On one label of a node."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    @classmethod
    def of(cls, obj: Json) -> Requirement:
        """Read one of a node selector term."""
        return cls(obj.get("key") or "", obj.get("operator") or "", frozenset(obj.get("values") or ()))

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with these labels meets it."""
        value = labels.get(self.key)
        if self.operator in ("In", "NotIn"):
            return (value in self.values) is (self.operator == "In")
        if self.operator in ("Exists", "DoesNotExist"):
            return (value is None) is (self.operator == "DoesNotExist")
        return value is not None and any(_is_beyond(value, self.operator, bound) for bound in self.values)


@attrs.frozen
class Toleration:
    """Of taints. One without a key is of all keys, one without an effect of all effects."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""

    @classmethod
    def of(cls, obj: Json) -> Toleration:
        """Read a toleration. A taint has the same fields, but no operator."""
        return cls(*(obj.get(field) or "" for field in ("key", "operator", "value", "effect")))

    def tolerates(self, taint: Toleration) -> bool:
        """Whether it is of that taint."""
        if self.effect not in ("", taint.effect) or self.key not in ("", taint.key):
            return False
        if self.operator in ("Gt", "Lt"):
            return _is_beyond(taint.value, self.operator, self.value)
        return self.operator == "Exists" or (self.operator in ("", "Equal") and self.value == taint.value)


@attrs.frozen(cache_hash=True)
class Pods:
    """What the pods of a pod set demand of nodes, as far as Kueue asks flavors."""

    selector: tuple[Requirement, ...] = ()
    terms: tuple[tuple[Requirement, ...], ...] = ()
    """Of the required node affinity: one of them must hold; none: it demands nothing."""
    tolerations: tuple[Toleration, ...] = ()

    @classmethod
    def of(cls, spec: Json) -> Pods | None:
        """Read the spec of a pod template; None: it cannot be read, or demands too much to look at."""
        if pods_flaw(spec):
            return None
        affinity = dig(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution") or {}
        terms = [term.get("matchExpressions") or () for term in affinity.get("nodeSelectorTerms") or ()]
        selector, tolerations = spec.get("nodeSelector") or {}, spec.get("tolerations") or ()
        values = [requirement.get("values") or () for term in terms for requirement in term]
        if sum(map(len, (selector, tolerations, terms, *terms, *values))) > MOST_DEMANDS:
            return None
        return cls(
            tuple(Requirement(key, "In", frozenset({value})) for key, value in sorted(selector.items())),
            tuple(tuple(map(Requirement.of, term)) for term in terms),
            tuple(map(Toleration.of, tolerations)),
        )

    def match(self, labels: Mapping[str, str], keys: Collection[str]) -> bool:
        """Whether nodes with these labels will do, where only these keys count."""
        if not all(requirement.holds(labels) for requirement in self.selector if requirement.key in keys):
            return False
        terms = ((requirement for requirement in term if requirement.key in keys) for term in self.terms)
        return not self.terms or any(all(requirement.holds(labels) for requirement in term) for term in terms)


@attrs.frozen(cache_hash=True)
class Flavor:
    """A ResourceFlavor of a worker."""

    name: str
    labels: tuple[tuple[str, str], ...] = ()
    taints: tuple[Toleration, ...] = ()
    """Those that keep pods away."""
    tolerations: tuple[Toleration, ...] = ()
    """That pods get with it."""
    by_topology: bool = False
    """Whether nodes are found by a topology, of which nothing is known: it counts as one that any pods may use."""

    @classmethod
    def of(cls, obj: Json) -> Flavor | None:
        """Read a ResourceFlavor; None: it cannot be read, or has too much to look at."""
        if flavor_flaw(obj):
            return None
        labels, taints, tolerations = (
            dig(obj, "spec", field) or () for field in ("nodeLabels", "nodeTaints", "tolerations")
        )
        if len(labels) + len(taints) + len(tolerations) > MOST_MARKS:
            return None
        return cls(
            name_of(obj),
            tuple(sorted(dict(labels).items())),
            tuple(taint for taint in map(Toleration.of, taints) if taint.effect in _EXCLUDING),
            tuple(map(Toleration.of, tolerations)),
            bool(dig(obj, "spec", "topologyName")),
        )

    def untolerated(self, pods: Pods) -> Toleration | None:
        """The first of its taints that keeps such pods away; None: none does."""
        known = (*pods.tolerations, *self.tolerations)
        return next((taint for taint in self.taints if not any(each.tolerates(taint) for each in known)), None)

    def takes(self, pods: Pods, keys: Collection[str]) -> bool:
        """Whether such pods may use it, where only these keys of labels count."""
        return self.by_topology or (self.untolerated(pods) is None and pods.match(dict(self.labels), keys))


def flavors(objects: Iterable[Json]) -> dict[str, Flavor]:
    """The ResourceFlavors that can be read, by name."""
    return {flavor.name: flavor for obj in objects if has_name(obj) and (flavor := Flavor.of(obj)) is not None}


def flavor_names(cluster_queue: Json) -> list[str]:
    """The flavors that a ClusterQueue names, in order."""
    groups = dig(cluster_queue, "spec", "resourceGroups") or ()
    return list(dict.fromkeys(str(flavor.get("name")) for group in groups for flavor in group.get("flavors") or ()))


def _is_beyond(value: str, operator: str, bound: str) -> bool:
    """Whether a number is greater or less than another, as Gt and Lt mean it."""
    if not (_NUMBER.fullmatch(value) and _NUMBER.fullmatch(bound)):
        return False
    return int(value) > int(bound) if operator == "Gt" else int(value) < int(bound)


@lru_cache(4096)
def usable(names: tuple[str, ...], known: tuple[Flavor, ...], pods: Pods) -> tuple[str, ...]:
    """The flavors of a resource group that such pods may use.

    Args:
        names: of its flavors.
        known: what is known of these.
        pods: what they demand.
    """
    keys, by_name = {key for flavor in known for key, _ in flavor.labels}, {flavor.name: flavor for flavor in known}
    return tuple(name for name in names if name not in by_name or by_name[name].takes(pods, keys))
