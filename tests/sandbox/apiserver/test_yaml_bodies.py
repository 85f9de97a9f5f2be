"""YAML that clients send: read as an API server reads it, and whatever it is, never a fault of the server."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multikueue.sandbox.apiserver.encoding import decode_yaml, encode

_TEXTS = st.text("019bxo_eE.+-:aynf~ \n'\"#{}[],&*!|>%@", max_size=30)


@pytest.mark.parametrize(
    ("body", "read"),
    [
        ("data: {t: 22:22, d: 2026-01-01}", {"data": {"t": "22:22", "d": "2026-01-01"}}),
        ("{8080: a, on: b, 1.5: c}", {"8080": "a", "true": "b", "1.5": "c"}),
        ("spec: {parallelism: 0o2, completions: 1e0}", {"spec": {"parallelism": 2, "completions": 1}}),
        ("{a: =, b: y, c: 0o7, d: 1e3}", {"a": "=", "b": True, "c": 7, "d": 1000}),
    ],
)
def test_bodies_are_what_kubernetes_reads(body: str, read: object) -> None:
    assert decode_yaml(body.encode()) == read


@pytest.mark.parametrize("body", ["a: .inf", "{~: a}", "a: &x 1\nb: *x", "[" * 200, "a: !!python/name:os.x ''", "\x00"])
def test_what_is_no_body_is_a_mistake_of_the_client(body: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode_yaml(body.encode())


@given(_TEXTS | st.binary(max_size=30).map(lambda raw: raw.decode(errors="replace")))
def test_whatever_is_sent_can_be_stored_or_is_refused(body: str) -> None:
    try:
        value = decode_yaml(body.encode())
    except ValueError:
        return
    encode(value)
