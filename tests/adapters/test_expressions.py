"""Expressions in CEL: what compiles, what they see, and what becomes of objects they were not written for."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multikueue.adapters.declared.costs import degree
from multikueue.adapters.declared.expressions import CostError, EvaluationError, Expression, MissingError
from multikueue.core.model.names import Json


def compiled(text: str, *variables: str) -> Expression:
    return Expression.compiled(text, variables or ("object",))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("object.status.phase ==", "at character 23"),
        ("", "is not an expression in CEL"),
        ("job.status.phase == 'Done'", "there is no variable 'job'; there is object"),
        ("done(object)", "there is no function 'done'"),
        ("has(object)", "invalid argument to has"),
        ("regex.replace('a', 'b', 'c')", "there is no variable 'regex'"),
        ("1 + object.spec == 2", "cannot hold for any job: "),
        ("'%s'.format(['a'])", "there is no function 'format'"),
        ("object.spec + 1 == 2", "cannot hold for any job: Unsupported operation"),
        ("1 / 0 == 1", "cannot hold for any job: "),
        ("int('abc') == 1", "cannot hold for any job: "),
        ("object.metadata.labels + 'x'", "cannot hold for any job: Unsupported operation"),
        ("string(duration('90m')) + 1", "cannot hold for any job: Unsupported operation"),
        ("timestamp(object.status.at).getHours('Europe/Berlin') > 8", "getHours\\(\\) takes no time zone here"),
        ("object.spec.map.all(k, v, v > 0)", "there is no function 'all'"),
    ],
)
def test_what_cannot_work_is_refused_when_it_is_compiled(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as refused:
        compiled(text)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("sets.contains(object.spec.list, [1])", True),
        ("sets.contains([1], object.spec.list)", False),
        ("sets.equivalent([1, 2], object.spec.list)", True),
        ("sets.intersects([5], object.spec.list)", False),
        ("object.spec.word.contains('ca')", True),
        ("object.spec.word.contains('x') || sets.contains([1], [1])", True),
        ("string(object.spec.paused)", "true"),
        ("string(1 == 2) + string(1)", "false1"),
        ("bool('true') && !bool('False')", True),
        ("object.spec.list.isSorted() && ![2, 1].isSorted() && [].isSorted()", True),
        ("object.spec.list.indexOf(2) * 10 + object.spec.list.lastIndexOf(2)", 12),
        ("[object.spec.list.indexOf(9), object.spec.word.indexOf('c'), object.spec.word.lastIndexOf('a')]", [-1, 2, 3]),
        ("[object.spec.list.sum(), object.spec.list.min(), object.spec.list.max()]", [5, 1, 2]),
        (
            "object.spec.word.charAt(1) + object.spec.word.substring(4) + ' x '.trim() + 'a.b'.replace('.', '-')",
            "bbcxa-b",
        ),
        ("['a', 'b'].join('-') + 'A'.lowerAscii() + 'a'.upperAscii()", "a-baA"),
        ("'a.b'.split('.').size() == 2 && size('abc') == 3", True),
    ],
)
def test_functions_that_users_were_told_of(text: str, value: Any) -> None:
    """As cel-go has them; the library lacks some, and takes `sets.contains` for the `contains` of texts."""
    assert compiled(text).value(object={"spec": {"list": [1, 2, 2], "paused": True, "word": "abcabc"}}) == value


@pytest.mark.parametrize(
    ("wanted", "text", "why"),
    [
        (bool, "'done'", "'done', which is neither true nor false"),
        (bool, "object.status", "{}, which is neither true nor false"),
        (bool, "1", "1, which is neither true nor false"),
        (str, "object.metadata.labels", "{}, which is no text"),
        (str, "true", "True, which is no text"),
        (
            bool,
            "object.status.count + 1",
            r"gives 2 with 1 in \.status\.count, which is neither true nor false: compare",
        ),
        (bool, "size(object.status.steps)", "gives 0 with '' in "),
        (bool, "object.status.phase == 'Done' ? 1 : 0", "gives 0 with"),
        (bool, "object.spec.frames - object.status.frames", r"0 with 1 in \.spec\.frames and \.status\.frames,"),
        (bool, "object.status.steps.filter(s, s.state == 'Done').size()", "gives 0 with \\[] in"),
        (bool, "object.status.steps.map(s, s.state)", "gives \\[] with"),
        (bool, "object.status.phase.lowerAscii()", "gives '' with"),
        (bool, "int(object.status.count)", "gives 1 with '1'"),
        (bool, "[object.status.done]", "gives \\[''] with"),
        (str, "object.status.count + 1", r"gives 2 with 1 in \.status\.count, which is no text: put string"),
        (str, "object.status.steps.map(s, s.state)", "gives \\[] with"),
    ],
)
def test_what_is_of_another_type_for_every_object_is_refused(wanted: type, text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Expression.compiled(text, ("object",), wanted=wanted)


@pytest.mark.parametrize(
    "text",
    [
        "object.status.phase == 'Done'",
        "object.status == {} ? false : object.status.count / 0 > 1",
        "1 / 0 == 1 || object.spec.x",
        "size(object.status.list) > 0 && object.status.list[0] + 1 == 2",
        "object.status.conditions.exists(c, c.type == 'Done' && c.status == 'True')",
        "object.status.done",
        "object.status.flags[0]",
        "object.status.flags['done']",
        "object.status.flags[object.status.current]",
        "object.status.steps.map(s, s.done)[0]",
        "object.status.phase == 'Done' ? object.status.well : false",
        "object.status.phase.split(',').size() > 1",
        "duration(object.status.took) > duration(object.spec.limit)",
    ],
)
def test_what_may_hold_for_a_job_is_taken(text: str) -> None:
    """Fields that are not there, and values that happen to be none, say nothing of other jobs."""
    Expression.compiled(text, ("object",), wanted=bool)


@pytest.mark.parametrize("text", ["object.status.phase == 'Done' ? 'rendered' : null", "object.status.note"])
def test_words_may_be_missing(text: str) -> None:
    Expression.compiled(text, ("object",), wanted=str)


def test_a_trial_leaves_no_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """The library logs what functions of Python raise."""
    Expression.compiled("object.status.phase.lowerAscii() + 'x' == 'donex'", ("object",), wanted=bool)
    assert not caplog.records


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("object.spec.replicas * 2", 6),
        ("object.metadata.labels['team'] + '-' + object.metadata.name", "red-train"),
        ("object.spec.list.filter(x, x > 1).map(x, string(x))", ["2", "3"]),
        ("object.spec.list.exists_one(x, x == object.spec.replicas)", True),
        ("object.spec", {"replicas": 3, "list": [1, 2, 3], "csv": "a,b"}),
        ("object.spec.csv.split(',')[1].upperAscii()", "B"),
        ("math.greatest(object.spec.replicas, 2)", 3),
        ("type(object.spec.replicas) == int", True),
        ("object.status == {} ? null : object.status", None),
        ("{'a': [1.5, true]}", {"a": [1.5, True]}),
    ],
)
def test_values_are_json(text: str, value: Any) -> None:
    job = {
        "metadata": {"name": "train", "labels": {"team": "red"}},
        "spec": {"replicas": 3, "list": [1, 2, 3], "csv": "a,b"},
    }
    assert compiled(text).value(object=job) == value


def test_an_object_has_its_parts_even_if_it_lacks_them() -> None:
    """So that a rule need not ask for each of them whether it is there."""
    assert not compiled("has(object.status.phase) || 'a' in object.metadata.labels").holds(object={})


def test_a_field_that_is_not_there_makes_nothing_true() -> None:
    """A job that has just been created lacks most of what rules read."""
    assert not compiled("object.status.phase == 'Done'").holds(object={})
    with pytest.raises(MissingError, match="there is no 'phase'"):
        compiled("object.status.phase").value(object={})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("object.status.count + 'x'", "No such overload"),
        ("object.status.count / 0", "division by zero"),
        ("duration('1h')", "its value is a timedelta, which JSON does not have"),
        ("double('inf')", "its value is inf, which API servers round or refuse"),
        ("object.status.list[7] == 1", "index out of bounds: 7"),
        ("int(object.status.word)", "string parse error"),
    ],
)
def test_what_has_no_value_says_why_in_one_line(text: str, why: str) -> None:
    with pytest.raises(EvaluationError, match=why) as failed:
        compiled(text).value(object={"status": {"count": 1, "list": [], "word": "x"}})
    assert "\n" not in str(failed.value)


def test_a_condition_is_true_or_false() -> None:
    """What it is does not stand in the problem: a count would be told anew with each step of the job."""
    for value, what in ((1, "a number"), ("yes", "a text"), ([True], "a list"), ({}, "an object"), (None, "null")):
        with pytest.raises(EvaluationError, match=f"gives {what}, which is neither true nor false: compare it with"):
            compiled("object.status.count").holds(object={"status": {"count": value}})


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["phase", "conditions", "count"]), _JSON))
def test_no_object_makes_it_raise_anything_else(status: Json) -> None:
    """What is on a worker was written by somebody else, and may be anything."""
    for text in ("object.status.conditions.exists(c, c.type == 'X')", "object.status.count > 1", "object.status"):
        with contextlib.suppress(EvaluationError):
            compiled(text).value(object={"status": status})


@pytest.mark.parametrize(
    "text", ["object.spec", "object.spec.note.matches(object.spec.note + '(')", "object.missing[object.spec.note].a"]
)
def test_a_failure_does_not_show_the_whole_job(text: str) -> None:
    """It is told in logs and events; environments of jobs hold what nobody else is to read."""
    job: Json = {"spec": {"note": "x" * 5000}, "missing": {}}
    with pytest.raises(EvaluationError) as caught:
        compiled(text).value(object=job) if "missing" in text else compiled(text).holds(object=job)
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize(
    ("text", "of_degree"),
    [
        ("object.spec.replicas == 3", 0),
        ("object.list.all(x, x.done)", 1),
        ("object.list . exists ( x , x == ').all(' )", 1),
        ("object.list.all(x, x.parts.exists(y, y == 'a'))", 1),
        ("object.list.all(x, x.a.all(y, y.b.all(z, z > 0)))", 1),
        ("object.list.all(x, x == object.spec.first)", 2),
        ("object.list.all(x, object.list.exists(y, y == x))", 2),
        ("object.list.map(x, x.name)", 2),
        ("object.list.filter(x, x > 1).map(x, string(x))", 2),
        ("object.list.map(x, x.parts).all(y, y.all(z, z > 0))", 2),
        ("object.list.distinct().size() == 1", 2),
        ("object.list.map(x, object.list)", 3),
        ("object.a.all(x, object.b.all(y, object.c.all(z, x + y == z)))", 3),
        ("object.list.map(x, object.list.map(y, y))", 4),
    ],
)
def test_the_degree_of_an_expression_is_that_of_its_loops(text: str, of_degree: int) -> None:
    assert degree(text, ["object"]) == of_degree


def test_loops_over_too_much_are_refused_before_they_begin() -> None:
    """3,000 entries took 6.9 s, in which the daemon did nothing else; this would take hours."""
    rule = compiled("object.list.all(x, object.list.all(y, object.list.all(z, object.list.all(u, u >= 0))))")
    with pytest.raises(CostError, match=r"its loops may take more than 1,000,000 steps"):
        rule.holds(object={"list": list(range(3000))})
    assert rule.holds(object={"list": list(range(20))})


def test_what_a_rule_does_not_read_costs_it_nothing() -> None:
    rule = compiled("object.spec.parts.map(x, x.name)")
    assert rule.value(object={"spec": {"parts": [{"name": "a"}], "other": list(range(3000))}}) == ["a"]


def test_long_texts_count() -> None:
    rule = compiled("object.list.map(x, x + x)")
    with pytest.raises(CostError):
        rule.value(object={"list": ["x" * 100_000]})
    parts = compiled("object.text.split(',').all(x, object.text.split(',').exists(y, x == y))")
    with pytest.raises(CostError):
        parts.value(object={"text": "," * 3000})


def test_a_range_that_an_object_asks_for_is_bounded() -> None:
    rule = compiled("lists.range(object.count).size()")
    assert rule.value(object={"count": 1000}) == 1000
    with pytest.raises(EvaluationError, match=r"lists\.range makes at most"):
        rule.value(object={"count": 1001})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("object.metadata.labels.map(k, k)", ["a", "b", "c", "d", "e"]),
        ("object.metadata.labels.filter(k, k > 'b').join(',')", "c,d,e"),
        ("object.metadata.labels.map(k, {'name': k, 'value': object.metadata.labels[k]})[4].name", "e"),
        ("object.spec.items.map(i, i) + object.metadata.labels.map(k, k)", ["y", "x", "a", "b", "c", "d", "e"]),
        (
            "has(object.spec.none) && object.spec.none.all(k, k == '') || object.metadata.labels.exists(k, k == 'e')",
            True,
        ),
    ],
)
def test_the_keys_of_a_map_come_in_one_order(text: str, value: object) -> None:
    """The library has another one each time: what was made of labels was patched again with each reconcile."""
    job = {"metadata": {"labels": dict.fromkeys("ebdac", "x")}, "spec": {"items": ["y", "x"]}}
    expression = Expression.compiled(text, ("object",))
    assert [expression.value(object=job) for _ in range(10)] == [value] * 10


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("object.spec.items.map(i, i.labels.map(k, k))", [[*"abcde"]] * 2),
        ("object.spec.items[0].labels.map(k, k)", [*"abcde"]),
        ("object.spec.items.filter(i, size(i.labels) > 1)[1].labels.map(k, k)", [*"abcde"]),
        ("object.spec.items.map(i, i.labels).map(m, m.map(k, k).filter(k, k in m && k > 'c'))", [[*"de"]] * 2),
        ("('a' == '' ? {} : object.metadata.labels).map(k, k)", [*"abcde"]),
        ("'a' in object.metadata.labels && 'x' in ['x'].map(y, y) ? {'b': 1, 'a': 2}.map(k, k) : []", [*"ab"]),
        ("object.metadata.labels.map(k, 'labels.map(k, k)')[0]", "labels.map(k, k)"),
    ],
)
def test_so_they_do_in_loops_within_loops_and_of_what_has_no_path(text: str, value: object) -> None:
    labels = dict.fromkeys("ebdac", "x")
    items = [{"labels": labels}, {"labels": labels}]
    job = {"metadata": {"labels": labels}, "spec": {"items": items}}
    expression = Expression.compiled(text, ("object",))
    assert [expression.value(object=job) for _ in range(10)] == [value] * 10


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("workload + '-' + origin", "wl-here"),
        ("workload.size() > 3 ? workload : origin", "here"),
        ("origin.startsWith('h') && object.spec.word.contains('ca')", True),
        ("remote.spec.word + workload", "abcabcwl"),
    ],
)
def test_names_are_texts_when_it_is_compiled_as_well(text: str, value: Any) -> None:
    """A patch that made a name of `workload` was refused at start: what is tried then was an object."""
    job = {"spec": {"word": "abcabc"}}
    expression = compiled(text, "object", "workload", "origin", "remote")
    assert expression.value(object=job, workload="wl", origin="here", remote=job) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("int(timestamp(object.status.at)) > 5", True),
        ("int(duration('1.5s'))", 1_500_000_000),
        ("int(object.status.text) + int(2.9)", 9),
        ("timestamp(10) == timestamp(object.status.at)", True),
        ("timestamp(object.status.at).getSeconds()", 10),
        ("matches(object.status.text, '^[0-9]$') && !matches('a', 'b')", True),
        ("object.status.words . exists ( w , matches(w, '^a') )", True),
    ],
)
def test_conversions_and_functions_that_the_library_lacks(text: str, value: Any) -> None:
    """They compiled, and failed for every job. cel-go 0.27 with Kubernetes' environment was asked."""
    status = {"at": "1970-01-01T00:00:10Z", "text": "7", "words": ["b", "ab"]}
    assert compiled(text).value(object={"status": status}) == value


@pytest.mark.parametrize(
    "text", ["bool(object.status.word)", "int(object.status.flag) > 0", "timestamp(object.status.word) > timestamp(0)"]
)
def test_what_cannot_be_converted_is_an_error_and_not_a_field_that_is_not_there(text: str) -> None:
    """A condition that failed so for each job just never held."""
    with pytest.raises(EvaluationError) as failed:
        compiled(text).holds(object={"status": {"word": "yes", "flag": True}})
    assert not isinstance(failed.value, MissingError)


@pytest.mark.parametrize(
    "text",
    [
        "object.status.state in 'Done'",
        "object.status.count.startsWith(1)",
        "object.status.state > 'a' + 1",
        "object.status.at.getHours() > 3",
        "object.spec.list.exists(x, x == 1) + 1 > 2",
        "object.status.state.endsWith(1) || object.status.state == 'x'",
    ],
)
def test_what_no_value_of_a_field_could_be_used_with_is_refused(text: str) -> None:
    """It failed for every job as soon as the job had the field."""
    with pytest.raises(ValueError, match="cannot hold for any job: "):
        compiled(text)


@pytest.mark.parametrize(
    "text",
    [
        "object.status.state in ['Done']",
        "object.status.conditions.exists(c, c.type == 'X' && c.count + 1 > 2)",
        "object.status.conditions[0].type.startsWith('a')",
        "timestamp(object.status.at).getHours() > 3",
        "duration(object.spec.limit) > duration('1h')",
        "object.metadata.labels['a.b/c'].contains('x')",
        "size(object.status.list) > 3",
        "object.status.flag ? 'a' : 'b'",
        "!object.status.flag",
        "object.status.list.filter(x, x > 1).map(x, x * 2)[0] == 4",
        "base64.decode(object.spec.secret) == b'x'",
        "object.spec.when.matches('^[0-9]+$') && int(object.spec.when) > 3",
        "object.status.map.all(k, k.startsWith('a'))",
        "math.greatest(object.spec.list) > 3",
        "sets.contains(object.spec.list, ['a'])",
        "object.spec.words.join(',') == 'a,b'",
    ],
)
def test_what_some_value_can_be_used_with_is_taken(text: str) -> None:
    compiled(text)
