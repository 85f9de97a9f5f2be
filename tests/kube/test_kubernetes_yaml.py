"""Half a kilobyte of YAML must not be hours of work."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.model.names import Json
from multikueue.errors import KubeconfigError
from multikueue.kube import parse_worker_kubeconfig
from multikueue.kube.kubernetes_yaml import (
    MAX_DEPTH,
    MAX_NUMBER,
    MAX_SIZE,
    MAX_VALUES,
    KubernetesDumper,
    KubernetesLoader,
    OutOfBoundsError,
)


def load(text: str) -> Any:
    """What it holds."""
    return yaml.load(text, KubernetesLoader)  # a SafeLoader


SAID: list[tuple[str, object]] = [
    *((word, True) for word in ("y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE", "!!bool y")),
    *((word, False) for word in ("n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", '!!bool "no"')),
    *((word, None) for word in ("", "~", "null", "Null", "NULL", '!!null ""')),
    *(
        (word, word)
        for word in ("yES", "tRUE", "nULL", "nan", "inf", "Infinity", "NaN", "=", "<<", ".", "._", "+", "._5")
    ),
    *((word, word) for word in ("22:22", "1:30", "190:20:30", "2026-01-01", "2026-01-01T00:00:00Z", "2026-1-1")),
    *((word, word) for word in ("0o8", "0b2", "0x", "0b", "1e", "_1", ".e3", "1e400", "0x1p3", "v1", "1.2.3", "--1")),
    *(
        ("0o644", 420),
        ("0644", 420),
        ("0O17", 15),
        ("0x1F", 31),
        ("+0X1f", 31),
        ("0b11", 3),
        ("-0B11", -3),
        ("0b-1", -1),
    ),
    *(("08", 8), ("0_8", 8), ("1_000", 1000), ("1__0", 10), ("1_", 1), ("0x_1", 1), ("-0", 0), ("+7", 7)),
    *(("1e3", 1000), ("12e03", 12000), ("1.0", 1), ("3.", 3), ("1.e3", 1000), ("-0.0", 0), ("1e18", 10**18)),
    *(("+.5", 0.5), (".5_0", 0.5), ("1_0.5", 10.5), ("1e-7", 1e-7), ("1e21", 1e21), ("-1.5E1", -15)),
    *(
        ("9223372036854775808", 1 << 63),
        ("18446744073709551615", (1 << 64) - 1),
        ("18446744073709551616", float(1 << 64)),
    ),
    *(("-9223372036854775809", -float(1 << 63)), ("-9223372036854775808", -(1 << 63))),
    ("0777777777777777777777777", 7.777777777777778e23),
    *(("'1'", "1"), ('"y"', "y"), ("!!str 08", "08"), ("!!float 1", 1), ("!!int '3'", 3), ("!!binary aGk=", "hi")),
    *(("|\n  1\n", "1\n"), (">-\n  y\n  n", "y n")),
]
"""What sigs.k8s.io/yaml 1.6.0 says (YAMLToJSON), and what both read beside that."""


@pytest.mark.parametrize(("text", "value"), SAID, ids=[repr(text) for text, _ in SAID])
def test_a_scalar_is_what_kubernetes_reads(text: str, value: object) -> None:
    """JSON tells `true`, `1` and `1.5` apart, and so does this."""
    read = load(f"a: {text}")["a"]
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize(
    ("keys", "read"),
    [
        ("8080: a, on: b, 1.5: c, 0x10: d, ~x: e", ["8080", "true", "1.5", "16", "~x"]),
        ("n: a, 1e3: b, 1e10: c, 2026-01-01: d, 22:22: e", ["false", "1000", "1e+10", "2026-01-01", "22:22"]),
        ("'1': a, !!binary aGk=: b, -0: c, 0.25: d", ["1", "hi", "0", "0.25"]),
    ],
)
def test_keys_are_texts(keys: str, read: list[str]) -> None:
    assert list(load("{" + keys + "}")) == read


def test_of_two_equal_keys_the_last_counts() -> None:
    assert load("{8080: 1, '8080': 2, a: {on: 1, on: 2}}") == {"8080": 2, "a": {"true": 2}}


@pytest.mark.parametrize("word", [".inf", "+.Inf", "-.INF", ".nan", ".NaN", "!!float .inf"])
def test_what_json_does_not_have_is_an_error_with_its_place(word: str) -> None:
    with pytest.raises(yaml.MarkedYAMLError, match="is no number that JSON has: put it in quotes") as caught:
        load(f"a:\n  b: {word}")
    assert "line 2" in str(caught.value.problem_mark)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{~: a}", "cannot be a key"),
        ("{[a]: b}", "cannot be a key"),
        ("{? {a: b} : c}", "cannot be a key"),
        ("{18446744073709551615: a}", "cannot be a key"),
        ("{1.23456789: a}", "cannot be a key"),
        ("{.inf: a}", "no number that JSON has"),
        ("!!int x", '"x" is no int'),
        ("!!int 1.0", '"1.0" is no int'),
        ("!!float y", '"y" is no float'),
        ("!!bool 1", '"1" is no bool'),
        ("!!null x", '"x" is no null'),
        ("!!int [1]", "is no int"),
        ("!!binary ///", "no base64 of a text"),
        ("!!binary /w==", "no base64 of a text"),
        (r'"\ud800"', "half of a character"),
        ("!!set {a: }", "could not determine a constructor"),
        ("!!python/name:os.system x", "could not determine a constructor"),
        ("!!timestamp 2026-01-01", "could not determine a constructor"),
        ("!mine x", "could not determine a constructor"),
    ],
)
def test_what_is_no_json_is_an_error(text: str, message: str) -> None:
    with pytest.raises(yaml.MarkedYAMLError, match=message):
        load(text)


@given(st.sampled_from([str(text) for text, _ in SAID]) | st.text("019bxo_eE.+-:aynf~ \n'#", max_size=9))
def test_what_is_written_is_read_as_the_same(text: str) -> None:
    """`n` is a good name of a namespace; printed without quotes it was none for kubectl any more."""
    written: Json = {"a": text, text: [text]}
    assert load(yaml.dump(written, Dumper=KubernetesDumper)) == written


def merges(levels: int, key: str) -> str:
    """Each level merges the one before nine times."""
    lines = ["m0: &m0 {a: 1}"]
    for level in range(1, levels):
        lines.append(f"m{level}: &m{level} {{{key}: [{', '.join([f'*m{level - 1}'] * 9)}]}}")
    return "\n".join(lines)


def aliases(levels: int) -> str:
    """Each level repeats the one before nine times."""
    lines = ["a0: &a0 x"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize("key", ["<<", "!!merge <<", '!!merge "x"', "!<tag:yaml.org,2002:merge> y"])
def test_merge_keys_are_refused(key: str) -> None:
    """However they are written."""
    with pytest.raises(yaml.YAMLError, match=r"merge keys .* are not read"):
        load(merges(2, key))


def test_a_small_kubeconfig_that_merges_for_minutes_is_refused() -> None:
    """560 bytes, and nine to the power of ten values."""
    text = merges(12, "!!merge <<")
    assert len(text) < 1000
    with pytest.raises(KubeconfigError, match=r"failed to parse kubeconfig\(apiconfig\)"):
        parse_worker_kubeconfig(text.encode())
    with pytest.raises(KubeconfigError, match=r"merge keys \(<<\) are not read: write the fields out"):
        parse_worker_kubeconfig(b"{!!merge <<: {a: 1}}")


def test_a_plain_merge_key_in_a_kubeconfig_is_refused() -> None:
    """To pass it over would be another kubeconfig than the one that was written."""
    given: Json = {"current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "a", "user": "u"}}]}
    given["clusters"] = [{"name": "a", "cluster": {"server": "https://w1"}}]
    given["users"] = [{"name": "u", "user": {"token": "own", "MERGE": {"token": "merged", "username": "x"}}}]
    text = yaml.safe_dump(given).replace("MERGE", "<<")
    with pytest.raises(KubeconfigError, match=r"merge keys \(<<\) are not read"):
        parse_worker_kubeconfig(text.encode())


def test_aliases_count_as_what_they_repeat() -> None:
    with pytest.raises(OutOfBoundsError, match=f"more than {MAX_VALUES} values"):
        load(aliases(12))
    with pytest.raises(KubeconfigError, match=r"aliases \(\*\) are not read here: write the values out"):
        parse_worker_kubeconfig(b"{a: &a x, b: *a}")
    long = f"a: &a {'x' * 10_000}\nb: [{', '.join(['*a'] * 200)}]"
    with pytest.raises(OutOfBoundsError, match=f"more than {MAX_SIZE} characters"):
        load(long)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: &x [1, 2]\nb: *x", {"a": [1, 2], "b": [1, 2]}),
        ("a: &x {b: &y 1}\nc: [*x, *y]", {"a": {"b": 1}, "c": [{"b": 1}, 1]}),
        ("&k key: *k", {"key": "key"}),
    ],
)
def test_aliases_within_the_bounds_are_read(text: str, expected: object) -> None:
    assert load(text) == expected


@pytest.mark.parametrize("text", ["&a [*a]", "a: &a {b: [*a]}"])
def test_nothing_holds_itself(text: str) -> None:
    with pytest.raises(yaml.YAMLError, match="stands in what it repeats"):
        load(text)


def test_anchors_hold_for_one_document() -> None:
    loaded = list(yaml.load_all("[&a 1, *a]\n---\n[&a 2, *a]", KubernetesLoader))
    assert loaded == [[1, 1], [2, 2]]
    with pytest.raises(yaml.YAMLError, match="stands in what it repeats"):
        list(yaml.load_all("&a [1]\n---\n&a [*a]", KubernetesLoader))


def test_an_unknown_alias_is_an_error_with_its_place() -> None:
    with pytest.raises(yaml.YAMLError, match="undefined alias"):
        load("a: *nothing")


def test_nesting_is_bounded() -> None:
    assert json.dumps(load("[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1))).count("[") == MAX_DEPTH - 1
    with pytest.raises(yaml.YAMLError, match=f"more than {MAX_DEPTH} levels"):
        load("[" * 5000)


@pytest.mark.parametrize("tag", ["!!int", "!!float"])
@pytest.mark.parametrize("digits", ["1" * 100_000, "1_" * 100_000, "0x" + "f" * 100_000, "1." + "1" * 100_000])
def test_numbers_are_short(tag: str, digits: str) -> None:
    """A long one takes time by the square of its length."""
    with pytest.raises(yaml.YAMLError, match=f"more than {MAX_NUMBER} characters"):
        load(f"a: {tag} {digits}")
    with pytest.raises(KubeconfigError, match=f"more than {MAX_NUMBER} characters"):
        parse_worker_kubeconfig(f"a: {tag} {digits}".encode())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{\n\t"a": [\n\t\t1,\n\t\t{"b":\t"c"}\n\t]\n}\n', {"a": [1, {"b": "c"}]}),
        ("a:\t1\nb:\t'x'\t\nc:\t|\n  d\n", {"a": 1, "b": "x", "c": "d\n"}),
        ("a: 1\t# a comment\nb: [x,\tz]\t\nc: z \t \n", {"a": 1, "b": ["x", "z"], "c": "z"}),
        ("a: x\ty \t z\nb: x\t\n  y\n", {"a": "x\ty \t z", "b": "x y"}),
        ("- a:\t1\n  b:\t2\n", [{"a": 1, "b": 2}]),
        ("\ufeff{\n\t'a': 1}", {"a": 1}),
    ],
)
def test_a_tab_is_a_space_where_it_indents_no_block(text: str, value: object) -> None:
    """As goyaml has it. JSON that a program has indented with tabs was no YAML, nor was `key:<tab>value`."""
    assert load(text) == value


@pytest.mark.parametrize("text", ["a:\n\tb: 1", "\ta: 1", "-\ta", "a: 1\n\t# a comment\n", "a:\n  b: 1\n\tc: 2"])
def test_a_tab_that_would_indent_a_block_is_an_error(text: str) -> None:
    with pytest.raises(yaml.YAMLError):
        load(text)


def test_a_kubeconfig_may_be_json_with_tabs() -> None:
    """Go's `json.MarshalIndent(config, "", "\\t")` in a worker's Secret."""
    cluster, context = {"name": "a", "cluster": {"server": "https://w1"}}, {"cluster": "a", "user": "u"}
    given: Json = {"current-context": "c", "contexts": [{"name": "c", "context": context}], "clusters": [cluster]}
    given["users"] = [{"name": "u", "user": {"token": "own"}}]
    assert parse_worker_kubeconfig(json.dumps(given, indent="\t")) == parse_worker_kubeconfig(given)
