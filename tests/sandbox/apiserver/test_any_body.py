"""Whatever a client sends is taken or refused as a server does: no body makes it raise anything else."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.names import GVK, Json, Resource
from multikueue.sandbox.apiserver import Registry, StatusError
from multikueue.sandbox.apiserver.encoding import clone, encode_answer
from multikueue.sandbox.apiserver.storage.cluster import WriteOptions
from multikueue.sandbox.apiserver.verbs import patching
from multikueue.sandbox.apiserver.verbs.updating import Target
from multikueue.sandbox.crds import load_crds
from tests.examples import examples

CONFIG_MAP, LEASE, POD = (
    Resource(GVK("", "v1", "ConfigMap"), "configmaps"),
    Resource(GVK("coordination.k8s.io", "v1", "Lease"), "leases"),
    Resource(GVK("", "v1", "Pod"), "pods"),
)
_NAMES = st.sampled_from(
    (
        *("metadata", "name", "labels", "annotations", "finalizers", "ownerReferences", "uid", "resourceVersion"),
        *("spec", "status", "data", "template", "containers", "parallelism", "podSets", "conditions", "count"),
        *("apiVersion", "kind", "resources", "requests", "cpu", "x", "renewTime"),
    )
)
_TIMES = "2026-02-30T00:00:00Z", "0001-01-01T00:00:00Z"
_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 63), (1 << 64) - 1),
    st.sampled_from((0, 1, 2.0, 1e19, 1e300, "", "a", "1Gi", "v1", "é", *_TIMES)),
)
_VALUES = st.recursive(
    _LEAVES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_NAMES, inner, max_size=4), max_leaves=12
)
_PATHS = st.sampled_from(("", "/spec", "/metadata/labels/a", "/spec/x/-", "x", "/spec/0"))
_STEPS = st.fixed_dictionaries(
    {"op": st.sampled_from(("add", "replace", "test", "copy", "remove", "move", "x"))},
    optional={"path": _PATHS, "value": _VALUES, "from": st.sampled_from(("/spec", "/nothing", ""))},
)
_BODIES = st.dictionaries(_NAMES, _VALUES, max_size=5) | _VALUES
_SERVER = Registry(garbage_collection=False)
for _definition in load_crds():
    _SERVER.create_object(_definition)


@given(
    resource=st.sampled_from((CONFIG_MAP, LEASE, POD, JOB, WORKLOAD)),
    body=_BODIES,
    steps=st.lists(_STEPS, max_size=3) | _VALUES,
    subresource=st.sampled_from(("", "status")),
)
@settings(max_examples=examples(150))
def test_no_body_is_a_fault_of_the_server(resource: Resource, body: Any, steps: Any, subresource: str) -> None:
    row = _SERVER.type_of(resource)
    made: Json = {"apiVersion": row.api_version, "kind": row.kind, "metadata": {"name": "a"}}
    target = Target(row, "default", "a", subresource if subresource in row.subresources else "")
    options = WriteOptions(manager="m")

    whole = {**made, **body} if isinstance(body, dict) else body
    patches = (
        *((patching.MERGE_PATCH, body), (patching.STRATEGIC_PATCH, body)),
        *((patching.JSON_PATCH, steps), (patching.APPLY_PATCH, whole)),
    )
    writes: list[Callable[[], Any]] = [
        *(partial(_SERVER.create, row, "default", sent, options) for sent in map(clone, (made, body, whole))),
        partial(_SERVER.update, target, clone(whole), options),
        *(partial(_SERVER.patch, target, form, clone(sent), options) for form, sent in patches),
    ]
    for write in writes:
        with contextlib.suppress(StatusError):
            encode_answer(write())
