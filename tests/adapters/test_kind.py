"""What all job kinds share, for rows that differ from Job's."""

from __future__ import annotations

import typing
from collections.abc import Callable
from datetime import datetime
from typing import Any
from unittest import mock

import attrs
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multikueue.adapters import (
    BUILTIN,
    AdapterRegistry,
    CopyRules,
    Delegation,
    HoldRules,
    JobKind,
    Membership,
    PodTemplates,
    SafeAdapter,
    StatusRules,
    SyncRules,
    TimeToLive,
    rules,
)
from multikueue.adapters.checked import checked
from multikueue.adapters.rules import ALWAYS_DELEGATED, MAX_STATUS, bounded, counters_at_zero, never_finished
from multikueue.core.model.adapter import JobAdapter, Stamp
from multikueue.core.model.copies import is_copy_of
from multikueue.core.model.kinds import EVENT, JOB, LEASE, MULTIKUEUE_CLUSTER, SECRET, WORKLOAD
from multikueue.core.model.labels import CONTROLLER_NAME, ELASTIC_ANNOTATION, ORIGIN_UID_ANNOTATION
from multikueue.core.model.names import GVK, Json, Resource
from multikueue.errors import AdapterError, RuleError
from multikueue.testing import job
from tests.core.door import NOW

WIDGETS = Resource(GVK("example.com", "v1", "Widget"), "widgets")
PLAIN = JobKind(resource=WIDGETS)
POLICY = JobKind(resource=WIDGETS, delegation=Delegation(path=("spec", "runPolicy", "managedBy")))
ALWAYS = JobKind(resource=WIDGETS, delegation=ALWAYS_DELEGATED)
STAMP = Stamp("here", "wl", "abc")


def widget(spec: Json | None = None, status: Json | None = None) -> Json:
    widget: Json = {"apiVersion": "example.com/v1", "kind": "Widget", "spec": spec or {}, "extra": 1}
    widget["metadata"] = {"name": "w", "namespace": "ns", "resourceVersion": "7", "uid": "u"}
    if status is not None:
        widget["status"] = status
    return widget


@pytest.mark.parametrize(
    ("rules", "said", "what"),
    [
        (Delegation, {"path": "spec.runBy"}, "Delegation.path: 'spec.runBy' is not a path of a field"),
        (CopyRules, {"left_out": ("spec", "license")}, "CopyRules.left_out: 'spec' is not a path"),
        (CopyRules, {"left_out": "spec"}, "CopyRules.left_out: 's' is not a path"),
        (CopyRules, {"suspend": ["spec", "paused"]}, "CopyRules.suspend: ['spec', 'paused'] is not a path"),
        (CopyRules, {"unread": ((),)}, "CopyRules.unread: () is not a path"),
        (CopyRules, {"config_maps": None}, "CopyRules.config_maps: None is no list of paths"),
        (StatusRules, {"addresses": (("status", 5),)}, "StatusRules.addresses: ('status', 5) is not a path"),
        (SyncRules, {"forwarded": (".spec.priority",)}, "SyncRules.forwarded: '.spec.priority' is not a path"),
        (PodTemplates, {"at": "spec.template"}, "PodTemplates.at: 'spec.template' is not a path"),
        (TimeToLive, {"seconds": "spec.ttl"}, "TimeToLive.seconds: 'spec.ttl' is not a path"),
    ],
)
def test_a_path_that_is_none_is_told_when_the_row_is_made(rules: Any, said: dict[str, Any], what: str) -> None:
    """A text was taken letter by letter: no job was delegated then, or its copy had all that was to be left out."""
    with pytest.raises(AdapterError) as refused:
        rules(**said)
    assert str(refused.value).startswith(what)
    assert str(refused.value).endswith("write one as ('spec', 'managedBy')")


class Renders:
    """Of another package: functions of a row as methods, some of them wrongly."""

    async def __call__(self, job: Json) -> None:
        raise NotImplementedError

    def finished(self, job: Json) -> None:
        raise NotImplementedError

    async def active(self, job: Json) -> bool:
        raise NotImplementedError

    def rule(self, local: Json, remote: Json, now: datetime, most: int = 9) -> Json | None:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("rules", "said", "what"),
    [
        (StatusRules, {"finished": "object.status.done"}, "StatusRules.finished: 'object.status.done' is no function"),
        (StatusRules, {"finished": None}, "StatusRules.finished: None is no function"),
        (StatusRules, {"finished": Renders.finished}, "StatusRules.finished: <function Renders.finished at "),
        (StatusRules, {"active": Renders().active}, "StatusRules.active: <bound method Renders.active of "),
        (StatusRules, {"rule": len}, "StatusRules.rule: <built-in function len> does not take 3 arguments"),
        (CopyRules, {"sanitised": {}}, "CopyRules.sanitised: {} is no function"),
        (CopyRules, {"prepared": True}, "CopyRules.prepared: True is no function"),
        (SyncRules, {"resized": ("spec", "replicas")}, "SyncRules.resized: ('spec', 'replicas') is no function"),
        (Membership, {"group": "team"}, "Membership.group: 'team' is no function"),
        (HoldRules, {"why_free": "", "hold": lambda job: None}, "HoldRules.why_free: '' is no function"),
        (
            CopyRules,
            {"templates": ("spec", "template")},
            "CopyRules.templates: ('spec', 'template') is no PodTemplates",
        ),
        (CopyRules, {"templates": None}, "CopyRules.templates: None is no tuple of PodTemplates"),
        (CopyRules, {"time_to_live": ("spec", "ttl")}, "CopyRules.time_to_live: ('spec', 'ttl') is no TimeToLive"),
        (StatusRules, {"words": "waits"}, "StatusRules.words: 'waits' is no Words"),
        (Delegation, {"heeding": "v1.2"}, "Delegation.heeding: 'v1.2' is no ManagedBySupport"),
    ],
)
def test_a_part_of_rules_that_is_none_is_told_when_the_row_is_made(rules: Any, said: dict[str, Any], what: str) -> None:
    """It failed for the first job, and for each one after it."""
    with pytest.raises(AdapterError) as refused:
        rules(**said)
    assert str(refused.value).startswith(what)


OPTIONAL: Any = vars(typing)["Optional"]
"""As adapters may write it; this project writes `| None`."""


@pytest.mark.parametrize(
    ("annotation", "given", "what"),
    [
        (OPTIONAL[Callable[[Json], str]], "status.done", "'status.done' is no function"),
        (OPTIONAL[Callable[[Json], str]], Renders().active, "is async"),
        (OPTIONAL[StatusRules], "waits", "'waits' is no StatusRules"),
        (OPTIONAL[tuple[PodTemplates, ...]], "spec", "'spec' is no tuple of PodTemplates"),
        (Callable[..., str], "status.done", "'status.done' is no function"),
        (Callable[..., str], Renders().active, "is async"),
        (Callable[..., str] | None, 5, "5 is no function"),
        (Callable, "status.done", "'status.done' is no function"),
        (Callable[..., str] | StatusRules, 5, "5 is no function"),
    ],
)
def test_a_row_of_an_adapter_says_its_fields_as_python_lets_it(annotation: Any, given: Any, what: str) -> None:
    """With `Optional` nothing was looked at, and `...` was told as `object of type 'ellipsis' has no len()`."""
    row = attrs.frozen(type("Own", (), {"__annotations__": {"rule": annotation}}), field_transformer=checked)
    with pytest.raises(AdapterError) as refused:
        row(given)
    assert str(refused.value).startswith("Own.rule: ")
    assert str(refused.value).endswith(what)


@pytest.mark.parametrize(
    ("annotation", "given"),
    [
        (OPTIONAL[Callable[[Json], str]], None),
        (OPTIONAL[StatusRules], StatusRules()),
        (Callable[..., str], Renders().finished),
        (Callable[..., str] | StatusRules, StatusRules()),
        (tuple[()], ()),
    ],
)
def test_what_a_row_of_an_adapter_may_hold_is_taken(annotation: Any, given: Any) -> None:
    row = attrs.frozen(type("Own", (), {"__annotations__": {"rule": annotation}}), field_transformer=checked)
    assert row(given).rule is given


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (Renders.finished, "does not take 1 argument"),
        (lambda: None, "does not take 1 argument"),
        (Renders().active, "is async"),
        (Renders(), "is async"),
    ],
)
def test_a_function_that_is_called_otherwise_is_refused(given: Any, why: str) -> None:
    with pytest.raises(AdapterError) as refused:
        StatusRules(finished=given)
    assert str(refused.value).endswith(why)


def nothing(*_: Any) -> Any:
    """As a function that changes what it was given, and whose author forgot to return it."""


def a_text(*_: Any) -> Any:
    return "Done"


@pytest.mark.parametrize(
    ("rules", "ask", "what"),
    [
        (CopyRules(sanitised=nothing), "copy", "sanitised answers with NoneType, and not with a dict"),
        (CopyRules(prepared=nothing), "copy", "prepared answers with NoneType, and not with a dict"),
        (StatusRules(rule=a_text), "status_patch", "rule answers with str, and not with a dict or None"),
        (StatusRules(stopped=nothing), "release_patch", "stopped answers with NoneType, and not with a dict"),
        (SyncRules(followed=a_text), "forward_patch", "followed answers with str, and not with a dict or None"),
        (SyncRules(resized=a_text), "forward_patch", "resized answers with str, and not with a dict or None"),
    ],
)
def test_an_answer_of_another_type_is_told_and_not_written(rules: Any, ask: str, what: str) -> None:
    """A copy without a spec was made, a text written as the status."""
    part = {CopyRules: "copies", StatusRules: "status", SyncRules: "sync"}[type(rules)]
    row = JobKind(resource=WIDGETS, **{part: rules})
    local, remote = widget(status={"a": 1}), widget(status={"a": 2})
    local["metadata"]["annotations"] = {ELASTIC_ANNOTATION: "true"}
    given = {
        "copy": (local, STAMP),
        "status_patch": (local, remote, NOW),
        "release_patch": (local,),
        "forward_patch": (local, remote, STAMP),
    }
    with pytest.raises(RuleError) as failed:
        getattr(row, ask)(*given[ask])
    assert str(failed.value) == f"the row for widgets.example.com: {what}"


class Unannotated:
    """As a function is in Python 3.14 whose annotations name what is imported for type checkers alone."""

    def __call__(self, job: Json) -> None:
        raise NotImplementedError

    @property
    def __signature__(self) -> None:
        raise NameError("name 'Outcome' is not defined")


def test_a_function_whose_annotations_name_what_is_not_there_will_do() -> None:
    StatusRules(finished=Unannotated())


def test_methods_classes_and_functions_with_more_that_may_be_left_out_will_do() -> None:
    StatusRules(finished=Renders().finished, active=bool, rule=Renders().rule)
    CopyRules(sanitised=dict, unheeded=lambda *jobs: [])


class TestDelegation:
    @pytest.mark.parametrize("spec", [{}, {"managedBy": None}, {"managedBy": ""}])
    def test_a_job_that_does_not_say_is_not_delegated(self, spec: Json) -> None:
        """Kueue's words: an absent field prints as empty."""
        assert PLAIN.not_delegated(widget(spec), "ours") == 'Expecting spec.managedBy to be "ours" not ""'

    def test_the_fields_true_path_is_named(self) -> None:
        """Kueue names spec.managedBy for kinds that have it under runPolicy, and sends people to the wrong place."""
        other = widget({"runPolicy": {"managedBy": "theirs"}})
        assert POLICY.not_delegated(other, "ours") == 'Expecting spec.runPolicy.managedBy to be "ours" not "theirs"'
        assert POLICY.not_delegated(widget({"runPolicy": {"managedBy": "ours"}}), "ours") is None

    def test_kueues_own_name_will_do_beside_a_controllers_other_name(self) -> None:
        """Most kinds' APIs accept no other value: beside the built-in MultiKueue, too, jobs must be able to say it."""
        assert POLICY.not_delegated(widget({"runPolicy": {"managedBy": CONTROLLER_NAME}}), "ours") is None

    def test_a_kind_with_a_value_of_its_own_takes_no_other(self) -> None:
        """A label cannot hold a controller's name."""
        own = JobKind(resource=WIDGETS, delegation=Delegation(path=("spec", "instance"), value="workers"))
        assert own.not_delegated(widget({"instance": "workers"}), "ours") is None
        assert own.not_delegated(widget({"instance": CONTROLLER_NAME}), "ours") is not None

    def test_a_kind_without_the_field_is_always_taken(self) -> None:
        assert ALWAYS.not_delegated(widget(), "ours") is None


class TestCopy:
    def test_the_field_goes_from_where_it_is(self) -> None:
        """And what lies beside it stays, fields nobody here knows included."""
        made = POLICY.copy(widget({"runPolicy": {"managedBy": "ours", "ttl": 5}, "newer": {"a": [1]}}), STAMP)
        assert made["spec"] == {"runPolicy": {"ttl": 5}, "newer": {"a": [1]}}
        assert (made["apiVersion"], made["kind"]) == ("example.com/v1", "Widget")
        assert "extra" not in made

    def test_a_kind_without_the_field_keeps_its_spec(self) -> None:
        assert ALWAYS.copy(widget({"managedBy": "x"}), STAMP)["spec"] == {"managedBy": "x"}


class TestStatus:
    def test_the_plain_rule_copies_all_of_it(self) -> None:
        local, remote = widget(status={"phase": "New", "old": 1}), widget(status={"phase": "Running"})
        patch = PLAIN.status_patch(local, remote, NOW)
        assert patch == {"metadata": {"resourceVersion": "7"}, "status": {"phase": "Running", "old": None}}

    def test_a_status_that_is_synced_is_not_sent_again(self) -> None:
        assert PLAIN.status_patch(widget(status={"a": 1}), widget(status={"a": 1}), NOW) is None
        assert PLAIN.status_patch(widget(), widget(status={}), NOW) is None

    def test_a_kind_whose_status_is_the_managers_own_is_left_alone(self) -> None:
        """StatefulSets: the manager's pods are what its status counts."""
        own = JobKind(resource=WIDGETS, status=StatusRules(rule=None))
        assert own.status_patch(widget(), widget(status={"a": 1}), NOW) is None

    def test_counters_may_lie_deeper(self) -> None:
        """Only those that are there and not zero are written."""
        stopped = counters_at_zero(("workers", "running"), ("masters", "running"))
        row = JobKind(resource=WIDGETS, status=StatusRules(stopped=stopped))
        patch = row.release_patch(widget(status={"workers": {"running": 2, "done": 1}}))
        assert patch == {"metadata": {"resourceVersion": "7"}, "status": {"workers": {"running": 0}}}


def test_a_plain_kind_neither_ends_nor_forwards() -> None:
    assert not PLAIN.traits.ends
    assert PLAIN.outcome(widget()) is never_finished(widget()) is None
    assert PLAIN.forward_patch(widget(), widget(), STAMP) is None


@pytest.mark.parametrize("part", ["resource", "delegation", "copies", "status", "sync", "membership"])
@pytest.mark.parametrize("given", ["spec.managedBy", None, StatusRules, {}], ids=["text", "None", "class", "mapping"])
def test_a_part_that_is_none_is_refused_by_its_name(part: str, given: Any) -> None:
    """It was an attribute that lacks, in the middle of the daemon's start."""
    parts: dict[str, Any] = {"resource": WIDGETS, part: given}
    with pytest.raises(AdapterError, match=f"JobKind.{part}: .* is no "):
        JobKind(**parts)


class TestRegistry:
    def test_rows_are_found_by_exactly_their_kind(self) -> None:
        registry = AdapterRegistry([*BUILTIN, PLAIN])
        adapter = registry.get(WIDGETS.gvk)
        assert adapter is not None
        assert adapter.row is PLAIN
        assert registry.get(JOB.gvk) is not None
        assert registry.get(GVK("example.com", "v2", "Widget")) is None

    def test_two_rows_for_one_kind_are_refused(self) -> None:
        """Which of them would win would depend on their order."""
        named = attrs.evolve(POLICY, source="externalFrameworks[0]")
        message = (
            r"externalFrameworks\[0\]: two adapters for example\.com/v1, Kind=Widget, this one and row 1: leave one out"
        )
        with pytest.raises(AdapterError, match=message):
            AdapterRegistry([PLAIN, named])

    def test_two_versions_of_one_kind_are_refused(self) -> None:
        """They are the same objects: each job would be watched, copied and looked after twice."""
        newer = JobKind(
            resource=Resource(GVK("example.com", "v2", "Widget"), "widgets"), source="externalFrameworks[1]"
        )
        message = r"externalFrameworks\[1\]: example\.com/v2, Kind=Widget is another version of the objects "
        with pytest.raises(AdapterError, match=message + r"that row 1 is for \(v1\): leave one out"):
            AdapterRegistry([PLAIN, newer])

    def test_a_kind_of_another_group_is_another_kind(self) -> None:
        other = JobKind(resource=Resource(GVK("example.org", "v1", "Widget"), "widgets"))
        assert len(AdapterRegistry([PLAIN, other])) == 2

    @pytest.mark.parametrize("given", ["batch/job", JobKind, WIDGETS, None])
    def test_what_is_no_row_is_refused_by_its_place(self, given: Any) -> None:
        with pytest.raises(AdapterError, match=r"row 2 is .*, which is no multikueue\.JobKind"):
            AdapterRegistry([PLAIN, given])

    @pytest.mark.parametrize("resource", [SECRET, WORKLOAD, EVENT, MULTIKUEUE_CLUSTER, LEASE], ids=str)
    def test_a_row_for_what_we_work_with_ourselves_is_refused(self, resource: Resource) -> None:
        with pytest.raises(AdapterError, match=r"row 2 is for .*, whose objects are no jobs: .*; name the kind"):
            AdapterRegistry([PLAIN, JobKind(resource=resource)])

    def test_a_row_alone_is_no_list_of_them(self) -> None:
        given: Any = PLAIN
        with pytest.raises(AdapterError, match=r"is no list of rows: write \[\.\.\.\] around a row"):
            AdapterRegistry(given)

    def test_it_tells_where_a_row_comes_from(self) -> None:
        registry = AdapterRegistry([*BUILTIN, PLAIN])
        assert registry.source(JOB.gvk) == "the built-in batch/job"
        assert registry.source(WIDGETS.gvk) == "row 2"
        assert registry.source(GVK("example.com", "v2", "Widget")) == ""

    def test_jobs_that_others_move_are_not_watched(self) -> None:
        others = attrs.evolve(PLAIN, workload_only=True)
        assert [adapter.row for adapter in AdapterRegistry([*BUILTIN, others]).followed] == list(BUILTIN)

    def test_it_can_be_walked_and_read(self) -> None:
        """Watches are opened for each of its rows; logs show it."""
        registry = AdapterRegistry([PLAIN])
        assert [adapter.row for adapter in registry] == [PLAIN]
        assert len(registry) == 1
        assert repr(registry) == "AdapterRegistry([Widget])"

    def test_the_built_in_rows_fit_together(self) -> None:
        """No kind twice, and each is what the plan asks for."""
        rows: list[JobAdapter] = [SafeAdapter(row) for row in BUILTIN]
        assert len(AdapterRegistry(BUILTIN)) == len(rows)


@pytest.mark.parametrize("kind", [kind for kind in BUILTIN if not kind.workload_only], ids=lambda kind: kind.framework)
def test_a_job_does_not_say_whose_copy_its_copy_is(kind: JobKind) -> None:
    """A user's own mark was copied, and the copy was taken for that of another job ever after."""
    local = widget()
    local["metadata"]["annotations"] = {ORIGIN_UID_ANNOTATION: "of-another-job", "team": "red"}
    made = kind.copy(local, STAMP)
    assert made["metadata"]["annotations"]["team"] == "red"
    assert is_copy_of(made, local)


def test_a_copy_runs_as_the_service_account_that_the_job_names() -> None:
    local = job()
    pod = local["spec"]["template"]["spec"]
    pod |= {"serviceAccountName": "deployer", "volumes": [{"name": "v", "secret": {"secretName": "s"}}]}
    row = next(kind for kind in BUILTIN if kind.resource == JOB)
    made = row.copy(local, STAMP)
    assert made["metadata"]["namespace"] == local["metadata"]["namespace"]
    assert made["spec"]["template"]["spec"] == pod


def test_a_status_of_any_size_fills_no_manager() -> None:
    """A worker that wrote 1.2 MB into the status of each copy had as much written on the manager, of every job."""
    entry = {"type": "Complete", "status": "True", "reason": "R", "message": "x" * 30_000, "observedGeneration": 3}
    conditions = [{**entry, "type": f"T{number}"} if number else entry for number in range(40)]
    indexes = ",".join(map(str, range(1, 60_000, 2)))
    large = {"conditions": conditions, "note": "y" * 900_000, "succeeded": 7, "completedIndexes": indexes}
    local, remote = widget(status={}), widget(status=large)
    patch = PLAIN.status_patch(local, remote, NOW)
    assert patch is not None
    shown = patch["status"]
    assert set(shown) == {"conditions", "succeeded", "completedIndexes"}
    assert shown["completedIndexes"] == indexes
    assert shown["conditions"][0] == {**entry, "message": "x" * 1_020 + " ..."}
    assert len(orjson.dumps({**shown, "completedIndexes": ""})) < MAX_STATUS
    assert PLAIN.status_patch({**local, "status": shown}, remote, NOW) is None, "it is not sent again"


COMPLETE: Json = {"type": "Complete", "status": "True", "reason": "Done", "message": "all of it"}


def shown_of(status: Json) -> Json:
    """What is shown of a status; it takes no more than it may, and is not sent again."""
    shown = bounded(status)
    assert len(orjson.dumps(shown)) <= MAX_STATUS
    assert bounded(shown) is shown
    return shown


def test_conditions_of_many_fields_fill_no_manager() -> None:
    """7 MB of them were sent on: no server took them, and the manager's job showed nothing."""
    wide = {f"field{number}": "x" * 375 for number in range(60)} | {"status": "False"}
    waiting = [{**wide, "type": f"T{number}"} for number in range(300)]
    own = {**wide, **COMPLETE}
    shown = shown_of({"conditions": [own, *waiting], "succeeded": 7})
    assert shown["succeeded"] == 7
    assert shown["conditions"][0].items() >= COMPLETE.items()
    assert shown["conditions"][-1].items() >= {"type": "T299", "status": "False"}.items()
    assert len(shown["conditions"]) > 50


def test_the_end_is_not_among_what_is_left_out() -> None:
    """The first 128 conditions were kept: a job never showed its end, which comes last."""
    waits = {"status": "False", "message": "x" * 3_000, "reason": "y" * 300}
    waiting = [{**waits, "type": f"T{number}"} for number in range(300)]
    for conditions in ([*waiting, COMPLETE], [COMPLETE, *waiting]):
        shown = shown_of({"conditions": conditions})["conditions"]
        assert COMPLETE in shown
        types = [entry["type"] for entry in shown]
        assert len(types) > 128
        assert types == [entry["type"] for entry in conditions if entry["type"] in types], "in their order"
        assert "T299" in types, "of the others, the last ones"
        assert "T0" not in types


def test_conditions_of_a_kinds_own_form_are_weighed_like_any_field() -> None:
    status = {"conditions": {"ready": "yes"}, "note": "y" * MAX_STATUS}
    assert shown_of(status) == {"conditions": {"ready": "yes"}}


OF_SPEC = ("completedIndexes", "failedIndexes")
SMALL = 16 << 10
"""The bound in these examples, so that what exceeds it many times is small, too."""
TEXTS = st.tuples(st.sampled_from(["x", "\x00", '"', "\u20ac"]), st.sampled_from([0, 1, 30, 375, 3_000, SMALL]))
"""What is repeated, and how often: the texts themselves are too long to be told."""
LEAVES = TEXTS | st.integers() | st.just(1 << 70) | st.booleans() | st.none()
COUNTS = st.sampled_from([0, 1, 60])
FIELDS = st.tuples(st.sampled_from(["f", "f" * 375, "f" * 2_000]), LEAVES, st.sampled_from([0, 1, 20]))
ENTRIES = st.tuples(FIELDS, st.dictionaries(st.sampled_from(["type", "status", "message"]), LEAVES), st.booleans())


def spelled(leaf: Any) -> Any:
    return leaf[0] * leaf[1] if isinstance(leaf, tuple) else leaf


def entry_of(fields: tuple[str, Any, int], known: Json, true: bool) -> Json:
    name, leaf, count = fields
    value = spelled(leaf)
    many = {f"{name}{number}": value for number in range(count)}
    return many | {field: spelled(leaf) for field, leaf in known.items()} | ({"status": "True"} if true else {})


@given(
    FIELDS,
    st.dictionaries(st.sampled_from([*OF_SPEC, "conditions"]), LEAVES),
    st.none() | st.lists(st.tuples(ENTRIES | LEAVES, COUNTS), max_size=3),
)
def test_what_is_shown_of_any_status_has_a_bound(
    fields: tuple[str, Any, int], known: Json, conditions: list[tuple[Any, int]] | None
) -> None:
    status = entry_of(fields, known, False)
    if conditions is not None:
        made = [
            (entry_of(*form) if isinstance(form, tuple) and len(form) == 3 else spelled(form), count)
            for form, count in conditions
        ]
        status["conditions"] = [entry for entry, count in made for _ in range(count)]
    with mock.patch.object(rules, "MAX_STATUS", SMALL):
        shown = bounded(status)
    rest = {field: value for field, value in shown.items() if field not in OF_SPEC}
    assert len(orjson.dumps(rest)) <= SMALL
    assert {field: shown.get(field) for field in OF_SPEC} == {field: status.get(field) for field in OF_SPEC}
    assert shown.keys() <= status.keys()
    try:
        fits = len(orjson.dumps(status)) <= SMALL
    except TypeError:  # a number that cannot be sent
        fits = False
    if fits:
        assert shown is status


def test_a_status_that_cannot_be_sent_is_left_out() -> None:
    deep: Json = {}
    for _ in range(300):
        deep = {"in": deep}
    patch = PLAIN.status_patch(widget(status={}), widget(status={"deep": deep, "ready": 1}), NOW)
    assert patch is not None
    assert patch["status"] == {"ready": 1}
