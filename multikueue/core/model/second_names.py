"""Several MultiKueueClusters for one cluster: one is the first, each other one a *second name*, and gets nothing new.

A cluster is known by the UID of its namespace `kube-system`. Clusters that were made from one image have the same one:
an annotation says that two are different. It is void once one of them shows an object that was marked for the other.

The condition on a second name says of which first, and by which UID. So a process that starts knows it while neither of
the two answers. It is JSON for programs; its reason is for people.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Final

import attrs
import orjson

from multikueue.core.model.conditions import condition, is_true, json_message, new_condition, says_the_same
from multikueue.core.model.labels import DIFFERENT_ANNOTATION
from multikueue.core.model.names import Json
from multikueue.core.model.objects import annotations_of, dig, name_of
from multikueue.core.model.worker_names import cordon_of

SECOND_NAME: Final = "multikueue.dev/SecondName"
"""The type of the condition. It stands on second names only."""


class Because(StrEnum):
    """The reason of the condition."""

    SAME_CLUSTER = "SameCluster"
    """Their UIDs are equal."""
    NOT_DIFFERENT = "NotDifferent"
    """The same, and they are said to be different; but one of them has shown what was made through the other."""


@attrs.frozen
class SecondName:
    """What makes a MultiKueueCluster a second name."""

    first: str
    """The MultiKueueCluster that comes first."""
    uid: str
    """Of the cluster that both lead to."""
    because: Because = Because.SAME_CLUSTER


@attrs.frozen
class ClusterNames:
    """All that lead to a cluster which another one leads to as well."""

    seconds: Mapping[str, SecondName] = MappingProxyType({})
    """By name, the second names."""
    apart: frozenset[frozenset[str]] = frozenset()
    """The pairs of one UID that are said to be different, and count as that."""

    def same_as(self, name: str) -> list[str]:
        """The other names of a cluster."""
        group = self._first(name)
        return sorted(other for other in {*self.seconds, group} if other != name and self._first(other) == group)

    def _first(self, name: str) -> str:
        return self.seconds[name].first if name in self.seconds else name


def cluster_names(
    clusters: Iterable[Json], listed: Collection[str], uids: Mapping[str, str], shown: Collection[frozenset[str]] = ()
) -> ClusterNames:
    """Which MultiKueueClusters lead to one cluster, and which of those comes first.

    First is one that a config lists, else the older one, else by name. One that is gone comes last.

    Args:
        clusters: the MultiKueueClusters there are. What an earlier process has said on them counts where this one has
            not heard of a cluster yet.
        listed: the names in all configs.
        uids: by name, which cluster it leads to, as far as this process knows. It may have names that are gone.
        shown: the pairs of which one has shown what was made through the other.
    """
    known, void = {name_of(cluster): cluster for cluster in clusters}, {*shown}
    uids, said = dict(uids), _said_different(known)
    for name, cluster in known.items():
        before = second_name(cluster)
        if before is None or before.first not in known:
            continue
        of_both = {uids.setdefault(either, before.uid) for either in (name, before.first)}
        if before.because is Because.NOT_DIFFERENT and len(of_both) == 1:
            void.add(frozenset((name, before.first)))

    def rank(name: str) -> tuple[bool, bool, str, str]:
        created = str(dig(known.get(name) or {}, "metadata", "creationTimestamp") or "")
        return name not in known, name not in listed, created, name

    firsts: dict[str, list[str]] = {}
    seconds: dict[str, SecondName] = {}
    apart: set[frozenset[str]] = set()
    for name in sorted(uids, key=rank):
        others = firsts.setdefault(uids[name], [])
        pairs = {other: frozenset((other, name)) for other in others}
        first = next((other for other in others if pairs[other] not in said or pairs[other] in void), None)
        if first is None:
            others.append(name)
            apart.update(pairs.values())
        else:
            because = Because.NOT_DIFFERENT if pairs[first] in said else Because.SAME_CLUSTER
            seconds[name] = SecondName(first, uids[name], because)
    return ClusterNames(seconds, frozenset(apart))


def _said_different(clusters: Mapping[str, Json]) -> set[frozenset[str]]:
    """The pairs that either of the two names as different."""
    listed = {
        name: annotations_of(cluster).get(DIFFERENT_ANNOTATION, "").split(",") for name, cluster in clusters.items()
    }
    return {frozenset((name, other.strip())) for name, others in listed.items() for other in others if other.strip()}


def second_name_status(cluster: Json, second: SecondName, now: datetime) -> Json | None:
    """The condition to write on a second name; None if it says the same already."""
    text = orjson.dumps({"first": second.first, "uid": second.uid}).decode()
    generation = dig(cluster, "metadata", "generation")
    wanted = new_condition(SECOND_NAME, True, second.because, text, now=now, generation=generation)
    return None if says_the_same(condition(cluster, SECOND_NAME), wanted) else wanted


def second_name(cluster: Json) -> SecondName | None:
    """What a MultiKueueCluster says; None: it is no second name."""
    if not is_true(cluster, SECOND_NAME):
        return None
    facts, reason = json_message(cluster, SECOND_NAME), dig(condition(cluster, SECOND_NAME), "reason")
    if not (facts.get("first") and facts.get("uid")):
        return None
    because = Because.NOT_DIFFERENT if reason == Because.NOT_DIFFERENT else Because.SAME_CLUSTER
    return SecondName(str(facts["first"]), str(facts["uid"]), because)


def held_as_second(first: str) -> str:
    """That a MultiKueueCluster gets nothing new, as another one of the same cluster does."""
    return f"it leads to the same cluster as {first}, and gets nothing beside it"


def why_nothing_new(cluster: Json) -> str:
    """Why a MultiKueueCluster gets no new jobs: it is cordoned, or a second name; empty: it gets them."""
    second = second_name(cluster)
    return cordon_of(annotations_of(cluster)) or (held_as_second(second.first) if second is not None else "")
