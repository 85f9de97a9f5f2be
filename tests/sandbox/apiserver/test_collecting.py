"""Garbage collection, driven by hand."""

from __future__ import annotations

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver import Registry
from multikueue.sandbox.apiserver.verbs.deleting import DeleteOptions
from multikueue.sandbox.apiserver.verbs.listing import ListOptions
from multikueue.sandbox.apiserver.verbs.patching import MERGE_PATCH
from multikueue.sandbox.apiserver.verbs.updating import Target
from tests.sandbox.apiserver.objects import CONFIG_MAPS, at, config_map


def owner_of(obj: Json, **reference: bool) -> Json:
    identity = {"apiVersion": obj["apiVersion"], "kind": obj["kind"]}
    return {**identity, "name": obj["metadata"]["name"], "uid": obj["metadata"]["uid"], **reference}


def names(registry: Registry) -> list[str]:
    page = registry.list(CONFIG_MAPS, "default", ListOptions())
    return [entry.obj["metadata"]["name"] for entry in page.entries]


def test_dependents_go_with_their_last_owner() -> None:
    """A dependent of two owners stays until both are gone."""
    registry = Registry()
    first = registry.create_object(config_map("first"))
    second = registry.create_object(config_map("second"))
    registry.create_object(config_map("dep", ownerReferences=[owner_of(first), owner_of(second)]))
    registry.delete(at("first"), DeleteOptions())
    registry.collect()
    assert names(registry) == ["dep", "second"]
    registry.delete(at("second"), DeleteOptions())
    registry.collect()
    assert names(registry) == []


def test_deletion_cascades() -> None:
    """Dependents of dependents go in the same collection."""
    registry = Registry()
    top = registry.create_object(config_map("top"))
    middle = registry.create_object(config_map("middle", ownerReferences=[owner_of(top)]))
    registry.create_object(config_map("leaf", ownerReferences=[owner_of(middle)]))
    registry.delete(at("top"), DeleteOptions())
    registry.collect()
    assert names(registry) == []


def test_orphaned_dependents_lose_the_reference() -> None:
    """With propagationPolicy Orphan they stay, free."""
    registry = Registry()
    owner = registry.create_object(config_map("own"))
    registry.create_object(config_map("dep", ownerReferences=[owner_of(owner)]))
    registry.delete(at("own"), DeleteOptions(propagation="Orphan"))
    registry.collect()
    assert names(registry) == ["dep"]
    assert not registry.get(CONFIG_MAPS, "default", "dep")["metadata"].get("ownerReferences")


def test_a_foreground_owner_waits_for_a_dependent_to_let_go() -> None:
    """Not only a deleted dependent frees it, also one that drops the reference."""
    registry = Registry()
    owner = registry.create_object(config_map("own"))
    reference = owner_of(owner, blockOwnerDeletion=True)
    registry.create_object(config_map("dep", ownerReferences=[reference], finalizers=["e.com/f"]))
    registry.delete(at("own"), DeleteOptions(propagation="Foreground"))
    registry.collect()
    assert names(registry) == ["dep", "own"]
    registry.patch(at("dep"), MERGE_PATCH, {"metadata": {"ownerReferences": None}})
    registry.collect()
    assert names(registry) == ["dep"]


def test_owners_in_a_circle_do_not_wait_for_each_other() -> None:
    """As on a real cluster, where the collector stops the one from blocking the other."""
    registry = Registry()
    first = registry.create_object(config_map("first"))
    second = registry.create_object(config_map("second", ownerReferences=[owner_of(first, blockOwnerDeletion=True)]))
    references = [owner_of(second, blockOwnerDeletion=True)]
    registry.patch(at("first"), MERGE_PATCH, {"metadata": {"ownerReferences": references}})
    registry.delete(at("first"), DeleteOptions(propagation="Foreground"))
    registry.collect()
    assert names(registry) == []


def test_an_owner_that_waits_for_its_dependents_keeps_none() -> None:
    """One of another owner loses the reference, so that the owner need not wait for it."""
    registry = Registry()
    leaving, staying = (registry.create_object(config_map(name)) for name in ("leaving", "staying"))
    references = [owner_of(leaving, blockOwnerDeletion=True), owner_of(staying)]
    registry.create_object(config_map("dep", ownerReferences=references))
    registry.delete(at("leaving"), DeleteOptions(propagation="Foreground"))
    registry.collect()
    assert names(registry) == ["dep", "staying"]


def test_an_object_born_with_a_dead_owner_goes() -> None:
    """A dependent created after its owner was deleted would stay forever otherwise."""
    registry = Registry()
    owner = registry.create_object(config_map("own"))
    registry.delete(at("own"), DeleteOptions())
    registry.collect()
    registry.create_object(config_map("dep", ownerReferences=[owner_of(owner)]))
    registry.collect()
    assert names(registry) == []


def test_owners_of_unknown_kinds_are_left_alone() -> None:
    """Of a kind that is not served nobody can say that it is gone."""
    registry = Registry()
    reference = {"apiVersion": "unknown/v1", "kind": "Thing", "name": "t", "uid": "u"}
    registry.create_object(config_map("dep", ownerReferences=[reference]))
    registry.collect()
    assert names(registry) == ["dep"]


def test_a_namespace_goes_when_it_is_empty() -> None:
    """A finalizer in it holds it, and letting go of the finalizer frees it."""
    registry = Registry()
    registry.create_object({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})
    registry.create_object(config_map("free") | {"metadata": {"name": "free", "namespace": "n"}})
    held = {"name": "held", "namespace": "n", "finalizers": ["e.com/f"]}
    registry.create_object(config_map("held") | {"metadata": held})
    registry.delete(Target(registry.cluster.namespace_type, None, "n"), DeleteOptions())
    registry.collect()
    page = registry.list(CONFIG_MAPS, "n", ListOptions())
    assert [entry.obj["metadata"]["name"] for entry in page.entries] == ["held"]
    registry.patch(Target(CONFIG_MAPS, "n", "held"), MERGE_PATCH, {"metadata": {"finalizers": None}})
    registry.collect()
    assert registry.cluster.namespace("n") is None


def test_nothing_is_collected_when_it_is_switched_off() -> None:
    """A bare API server without controllers can be had."""
    registry = Registry(garbage_collection=False)
    owner = registry.create_object(config_map("own"))
    registry.create_object(config_map("dep", ownerReferences=[owner_of(owner)]))
    registry.delete(at("own"), DeleteOptions())
    assert registry.collect() == 0
    assert names(registry) == ["dep"]
