"""What an earlier Kueue on a worker lacks."""

from __future__ import annotations

import pytest

from multikueue.core.model.worker_kueue import CONSTRAINTS, GATES, Version, WorkerKueue, version_of


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("registry.k8s.io/kueue/kueue:v0.17.3", (0, 17)),
        ("us-central1-docker.pkg.dev/k8s-staging-images/kueue/kueue:v0.20.0-devel-377-gff69552e79", (0, 20)),
        ("mirror.example.com:5000/kueue:0.15.0@sha256:abc", (0, 15)),
        ("mirror.example.com:5000/kueue:main", None),
        ("registry.k8s.io/kueue/kueue@sha256:0.15", None),
        ("", None),
        ("kueue:v99999999999999999999.1", None),
    ],
)
def test_the_version_is_that_of_the_image(image: str, version: Version | None) -> None:
    assert version_of(image) == version


def test_what_is_not_known_is_no_fault() -> None:
    assert WorkerKueue().lacks == ()
    assert WorkerKueue((0, 18), read=True).lacks == ()


def test_what_an_older_one_lacks_is_said_with_what_follows() -> None:
    """A version without gates is older than those that read names from annotations."""
    gates, constraints, names = WorkerKueue(None, frozenset({GATES, CONSTRAINTS}), read=True).lacks
    assert (gates.split()[0], constraints.split()[0], names.split()[0]) == (GATES, CONSTRAINTS, "names")
    assert WorkerKueue((0, 17), read=True).lacks == (names,)


def test_a_field_that_an_answer_lacks_is_missing() -> None:
    """Others are of no consequence here."""
    dropped = (".spec.preemptionGates", ".spec.podSets[3].topologyRequest.podsetSliceRequiredTopologyConstraints")
    assert WorkerKueue().without((*dropped, ".spec.podSets[0].minCount")).missing == {GATES, CONSTRAINTS}
