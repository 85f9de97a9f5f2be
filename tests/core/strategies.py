"""Snapshots as Hypothesis draws them: every combination the caches could show, likely or not."""

from __future__ import annotations

from datetime import timedelta

import attrs
from hypothesis import strategies as st

from multikueue.adapters import HoldRules, Membership
from multikueue.core.model.labels import CORDON_ANNOTATION, LAST_WORKER_ANNOTATION, MOVE_FROM_ANNOTATION
from multikueue.core.model.names import Json
from tests.core.building import (
    ADAPTER,
    EARLIER,
    UNMARKED,
    WorkloadFacts,
    copy_of,
    job,
    job_copy_of,
    snapshot,
    worker,
    workload,
)
from tests.core.door import (
    NOW,
    Connected,
    Connecting,
    Created,
    Creating,
    Idle,
    Kind,
    Lost,
    NothingSent,
    Opaque,
    Reach,
    Refusal,
    Removing,
    Served,
    Snapshot,
    Syncing,
    Unanswered,
    Unserved,
    Untracked,
    Unusable,
    Worker,
)

NAMES = ("w1", "w2", "w3")
ATTEMPTS = st.sampled_from((None, None, EARLIER, UNMARKED))
NO_FACTS: Json = {}
STATUSES: st.SearchStrategy[Json] = st.sampled_from(
    (NO_FACTS, {"active": 1}, {"active": 0}, {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]})
)
REACHES: st.SearchStrategy[Reach] = st.sampled_from(
    (
        *[Connected()] * 4,
        Connecting(),
        Lost(),
        Opaque(),
        Opaque(seen=False),
        *(Lost(NOW - ago, seen) for ago in (timedelta(minutes=1), timedelta(hours=1)) for seen in (True, False)),
    )
)
KINDS: st.SearchStrategy[Kind] = st.sampled_from(
    (
        *[Served()] * 6,
        Syncing(),
        Opaque(),
        Unserved(timedelta(minutes=1)),
        Unserved(timedelta(hours=1), seen=False),
        Unusable(),
    )
)
rarely = st.sampled_from((False, False, False, True))
mostly = rarely.map(lambda value: not value)


LIVES: dict[str, WorkloadFacts] = {
    "pending": {},
    "offered": {"nominated": ("w1", "w2")},
    "offered to one": {"nominated": ("w3",)},
    "assigned": {"check": "Ready", "cluster": "w1"},
    "assigned elsewhere": {"check": "Ready", "cluster": "gone"},
    "assigned, check pending": {"cluster": "w2"},
    "evicted": {"evicted": "Preempted"},
    "evicted early": {"evicted": "Preempted", "nominated": ("w1",)},
    "ready without a worker": {"check": "Ready"},
    "retrying": {"check": "Retry", "cluster": "w1"},
    "rejected": {"check": "Rejected"},
    "no quota": {"quota": False},
    "finished": {"finished": "Succeeded", "cluster": "w1", "check": "Ready"},
    "deleted": {"deleting": True},
}
"""States of the manager's Workload as the API server allows them: a clusterName or nominations, not both."""
lives = st.sampled_from([*LIVES, *list(LIVES)[:8], *list(LIVES)[:4]])
"""The states in which copies run come up more often."""


KIN: dict[str, tuple[WorkloadFacts, ...]] = {
    "": ({},),
    "slices": ({"elastic": True}, {"elastic": True, "finished": "WorkloadSliceReplaced"}),
    "group": ({"index": "0"}, {"index": "1"}, {"index": "odd"}),
}
"""What Workloads of one job say of themselves."""
kinds_of_kin = st.sampled_from((*[""] * 6, "slices", "slices", "group"))
PLACEMENTS: st.SearchStrategy[list[Json]] = st.sampled_from(
    ([{"name": "main", "count": 1}], [{"name": "main", "count": 1, "delayedTopologyRequest": "Pending"}])
)


@st.composite
def siblings_(draw: st.DrawFn, kin: str) -> tuple[Json, ...]:
    """Other Workloads of the same job, in any state."""
    names = draw(st.sampled_from(((), ("older",), ("older", "younger"))))
    if not kin:
        return ()
    facts: list[WorkloadFacts] = [
        {**LIVES[draw(lives)], **draw(st.sampled_from(KIN[kin])), "name": name} for name in names
    ]
    return tuple(workload(**changes) for changes in facts)


@st.composite
def locals_(draw: st.DrawFn, kin: str = "") -> Json:
    """The manager's Workload."""
    facts: WorkloadFacts = {
        **LIVES[draw(lives)],
        **draw(st.sampled_from((KIN[kin][0], *KIN[kin]))),
        "assignments": draw(PLACEMENTS),
        "other_checks": draw(st.sampled_from((NO_FACTS, NO_FACTS, {"budget": "Pending"}, {"budget": "Ready"}))),
        "evictions": draw(st.integers(0, 1)),
        "spec": draw(st.sampled_from((NO_FACTS, NO_FACTS, {"priority": 7}))),
    }
    local = workload(**facts)
    if draw(rarely):
        local["metadata"].setdefault("annotations", {})[MOVE_FROM_ANNOTATION] = draw(st.sampled_from(NAMES))
    return local


@st.composite
def workers(draw: st.DrawFn, name: str, local: Json, siblings: tuple[Json, ...] = ()) -> Worker:
    """One worker with copies of `local`, of any attempt and in any state."""
    copy = None
    if draw(st.booleans()):
        copy = copy_of(
            local,
            admitted=draw(st.booleans()),
            finished=draw(st.sampled_from((None, None, None, "Succeeded", "OutOfSync", "OwnerNotFound"))),
            evicted=draw(rarely),
            stopping=draw(rarely),
            attempt=draw(ATTEMPTS),
            deleting=draw(rarely),
            held=draw(rarely),
            spec=draw(st.sampled_from(({}, {}, {}, {"priority": 1}, {"queueName": "other"}, {"active": False}))),
            owned=draw(st.booleans()),
            gate=draw(st.sampled_from((None, None, "Closed", "Open"))),
            blocked=draw(rarely),
            assignments=draw(st.sampled_from(([], [{"name": "main", "topologyAssignment": {"levels": ["rack"]}}]))),
            uid=f"uid-copy-{name}",
        )
    jobs = [
        job_copy_of(
            local,
            name=job_name,
            suspended=draw(st.booleans()),
            status=draw(STATUSES),
            attempt=draw(ATTEMPTS),
            deleting=draw(rarely),
            uid=f"uid-{job_name}-{name}",
        )
        for job_name in draw(st.sampled_from(((), ("train",), ("train",), ("other",), ("train", "other"))))
    ]
    shared = None
    if siblings and not any(job["metadata"]["name"] == "train" for job in jobs) and draw(st.booleans()):
        of = draw(st.sampled_from((job(), job(elastic=True))))
        shared = job_copy_of(draw(st.sampled_from(siblings)), of=of, status=draw(STATUSES), uid=f"uid-shared-{name}")
    return worker(
        name,
        copy,
        *jobs,
        shared=shared,
        configured=draw(mostly),
        annotations=draw(st.sampled_from((NO_FACTS, NO_FACTS, NO_FACTS, {CORDON_ANNOTATION: "true"}))),
        reach=draw(REACHES),
        kind=draw(KINDS),
        in_flight=draw(st.sampled_from((Idle(), Idle(), Idle(), Creating(), Removing()))),
        creation=draw(st.sampled_from((Untracked(), NothingSent(), Created(), Unanswered(timedelta(seconds=3))))),
        refusal=draw(st.sampled_from((None, None, None, Refusal("denied", timedelta(minutes=5))))),
    )


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    """One Workload, its job, and what lies on up to three workers."""
    kin = draw(kinds_of_kin)
    local, siblings = draw(locals_(kin)), draw(siblings_(kin))
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=draw(mostly)))
    workers_ = [draw(workers(name, local, siblings)) for name in names]
    elastic = kin == "slices"
    facts: Json = {"job": draw(st.sampled_from((job(elastic=elastic), job(elastic=elastic, suspended=False))))}
    facts["job"] = {**facts["job"], "status": draw(STATUSES)}
    parts = Membership(workloads=draw(st.sampled_from((lambda _: 1, lambda _: 2))))
    free = draw(st.sampled_from(("", "it is not held")))
    holding = HoldRules(why_free=lambda _: free, hold=lambda _: None)
    facts["adapter"] = attrs.evolve(ADAPTER, keeps_check_pending=draw(rarely), holding=holding, membership=parts)
    facts["siblings"] = siblings
    facts["last_worker"] = draw(st.sampled_from((None, None, *NAMES)))
    if draw(rarely):
        local["metadata"].setdefault("annotations", {})[LAST_WORKER_ANNOTATION] = draw(st.sampled_from(NAMES))
    oddity = draw(
        st.sampled_from((*[""] * 14, "gone", "not ours", "unknown check", "unseen job", "foreign job", "no row"))
    )
    if oddity == "gone":
        return snapshot(None, *workers_, check=None, siblings=siblings)
    odd: dict[str, Json] = {
        "not ours": {"check": None},
        "unknown check": {"check": None, "check_unknown": True},
        "unseen job": {"job": {}},
        "foreign job": {"job": job(managed_by=None)},
        "no row": {"adapter": None},
    }
    return snapshot(local, *workers_, **(facts | odd.get(oddity, {})))
