"""What the server makes of bodies: the forms of values, dropped and refused fields."""

from __future__ import annotations

from typing import Any

import pytest

from multikueue.core.model.names import Json
from multikueue.core.model.quantities import exact, thousandths
from multikueue.sandbox.apiserver import Registry
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.apiserver.status_errors import StatusError
from multikueue.sandbox.apiserver.validation.decoding import canonical_quantity, decode_object, empty_object


def row(group: str, plural: str) -> ResourceType:
    return Registry().cluster.types[group, "v1", plural]


def decoded(group: str, plural: str, body: Json, **options: Any) -> Json:
    kind = row(group, plural)
    head = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "x"}}
    return decode_object(kind, {**head, **body}, **options)


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        ("0.5", "500m"),
        (2, "2"),
        ("1000", "1k"),
        ("1500m", "1500m"),
        ("1024Mi", "1Gi"),
        ("0.5Gi", "512Mi"),
        ("1.5Ki", "1536"),
        ("1e3", "1e3"),
        ("0", "0"),
        ("100", "100"),
        ("-1", "-1"),
    ],
)
def test_quantities_have_one_form(given: Any, canonical: str) -> None:
    """Two spellings of one quantity are the same field, so applying one over the other changes nothing."""
    assert canonical_quantity(given) == canonical
    assert exact(str(given))[0] == exact(canonical)[0]


@pytest.mark.parametrize("given", ["1e999", "1e30", "9999999Ei", "99999999999999999999"])
def test_a_quantity_beyond_what_a_server_counts_is_the_most_that_it_counts(given: str) -> None:
    """As Kubernetes caps it: what is stored can be read again."""
    assert canonical_quantity(given) == "9223372036854775807"
    assert thousandths(canonical_quantity(given)) == (2**63 - 1) * 1000


@pytest.mark.parametrize("given", ["", "1x", "one", True, "1Kim"])
def test_what_is_no_quantity_is_refused(given: Any) -> None:
    """Before it reaches whoever would add it up."""
    with pytest.raises(ValueError, match="quantities must match"):
        canonical_quantity(given)


def test_unknown_fields_of_builtin_kinds_are_dropped() -> None:
    """A typo is not stored, and in strict mode it is an error."""
    assert "junk" not in decoded("batch", "jobs", {"spec": {"junk": 1}})["spec"]
    with pytest.raises(StatusError) as caught:
        decoded("batch", "jobs", {"spec": {"junk": 1}}, strict=True)
    assert (caught.value.code, 'unknown field "spec.junk"' in caught.value.message) == (400, True)


def test_empty_values_are_left_out_where_the_type_says_so() -> None:
    """A count that is no pointer is absent when it is 0; one that is a pointer stays."""
    status = decoded("batch", "jobs", {"status": {"active": 0, "ready": 0, "conditions": []}})["status"]
    assert status == {"ready": 0}


def test_times_are_in_utc_and_unset_ones_are_null() -> None:
    """As clients of a real server read them."""
    status = {"startTime": "2026-01-01T02:00:00+02:00", "conditions": [{"type": "Ready", "status": "True"}]}
    shown_status = decoded("", "pods", {"status": status})["status"]
    assert shown_status["startTime"] == "2026-01-01T00:00:00Z"
    assert shown_status["conditions"][0]["lastTransitionTime"] is None


@pytest.mark.parametrize(
    ("plural", "body"),
    [
        ("pods", {"spec": {"containers": "x"}}),
        ("pods", {"spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": "much"}}}]}}),
        ("pods", {"status": {"startTime": "today"}}),
        ("secrets", {"data": {"k": "not base64!"}}),
        ("secrets", {"data": {"k": 1}}),
    ],
)
def test_wrong_types_are_a_bad_request(plural: str, body: Json) -> None:
    """Or an invalid patch, or an apply that fails, each as a real server puts it."""
    for options, code in (({}, 400), ({"patched": True}, 422), ({"applied": True}, 500)):
        with pytest.raises(StatusError) as caught:
            decoded("", plural, body, **options)
        assert caught.value.code == code


def test_an_empty_object_has_what_its_type_always_has() -> None:
    """Nobody owns what is there before anything is set."""
    empty = empty_object(row("", "pods"))
    assert empty["spec"] == {"containers": None}
    assert empty["status"] == {}
