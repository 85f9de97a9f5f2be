"""Kueue's `available()`, against an oracle that tries every amount and looks whether a limit is broken."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.dispatchers.scored.facts import Group, PodSet, ResourceRequest
from multikueue.core.dispatchers.scored.room import LEVELS, UNLIMITED, Node, Quota, Tree, missing, placed, unknown

GPU = ("a100", "gpu")
MOST = 1_000
"""More than any tree here has."""
OWN, TOP = "own", "top"


def gpus(nominal: int, borrowing: int | None = None, lending: int | None = None) -> dict[tuple[str, str], Quota]:
    return {GPU: Quota(nominal, borrowing, lending)}


@attrs.define
class Pool:
    """A node of the oracle: it knows its children, where the product's knows its parent."""

    quota: Quota
    usage: int = 0
    children: list[Pool] = attrs.field(factory=list)

    def has(self) -> int:
        return self.quota.nominal + sum(child.has() - child.keeps() for child in self.children)

    def keeps(self) -> int:
        return max(0, self.has() - self.quota.lending) if self.quota.lending is not None else 0

    def uses(self) -> int:
        return self.usage + sum(max(0, child.uses() - child.keeps()) for child in self.children)

    def is_sound(self, *, root: bool) -> bool:
        if root:
            within = self.uses() <= self.has()
        else:
            within = self.quota.borrowing is None or self.uses() <= self.has() + self.quota.borrowing
        return within and all(child.is_sound(root=False) for child in self.children)


limits = st.one_of(st.none(), st.integers(0, 6))
quotas = st.builds(Quota, st.integers(0, 8), limits, limits)
leaves = st.builds(Pool, quotas, st.integers(0, 10))
pools = st.recursive(leaves, lambda below: st.builds(Pool, quotas, st.just(0), st.lists(below, min_size=1, max_size=3)))


def tree_of(pool: Pool) -> tuple[Tree, dict[str, Pool]]:
    queues, cohorts, pools = dict[str, Node](), dict[str, Node](), dict[str, Pool]()

    def add(node: Pool, name: str, parent: str | None) -> None:
        made = Node(parent, {GPU: node.quota}, {GPU: node.usage})
        if node.children:
            cohorts[name] = made
            for index, child in enumerate(node.children):
                add(child, f"{name}-{index}", name)
        else:
            queues[name], pools[name] = made, node

    add(pool, TOP, None)
    return Tree(queues, cohorts), pools


@given(pools)
def test_available_is_the_most_that_breaks_no_limit(pool: Pool) -> None:
    tree, leaves = tree_of(pool)
    sound = pool.is_sound(root=True)

    for name, leaf in leaves.items():
        before, most = leaf.usage, 0
        while most < MOST:
            leaf.usage = before + most + 1
            if not pool.is_sound(root=True):
                break
            most += 1
        leaf.usage = before
        free = tree.available(name)[GPU]
        assert free == most if sound else free >= 0


@given(pools)
def test_what_is_borrowable_is_what_is_available_beyond_its_own(pool: Pool) -> None:
    tree, leaves = tree_of(pool)

    for name, leaf in leaves.items():
        own = max(0, tree.nominal(name)[GPU] - leaf.usage)
        assert tree.borrowable(name)[GPU] == max(0, tree.available(name)[GPU] - own)


@given(pools)
def test_the_ceiling_is_what_is_available_in_an_empty_tree(pool: Pool) -> None:
    tree, _ = tree_of(pool)
    empty = Tree({name: attrs.evolve(node, usage={}) for name, node in tree.queues.items()}, tree.cohorts)

    for name in tree.queues:
        assert tree.ceiling(name) == empty.available(name)
        assert tree.ceiling(name)[GPU] >= tree.available(name)[GPU]


@given(pools)
def test_without_cohorts_it_is_never_more_than_kueues_own(pool: Pool) -> None:
    """What may be lent may be in use elsewhere: nobody can tell."""
    tree, _ = tree_of(pool)
    blind = Tree(tree.queues, readable=False)

    for name in tree.queues if pool.is_sound(root=True) else ():
        assert blind.available(name)[GPU] <= tree.available(name)[GPU]
        assert blind.ceiling(name)[GPU] >= tree.ceiling(name)[GPU]  # what could never fit is told by no guess


def test_unreadable_cohorts_leave_only_what_is_not_lendable() -> None:
    queues = {OWN: Node("team", gpus(8, lending=3), {GPU: 2}), "alone": Node(None, gpus(4), {GPU: 1})}
    tree = Tree(queues, readable=False)

    assert tree.available(OWN)[GPU] == 3
    assert tree.ceiling(OWN)[GPU] > UNLIMITED
    assert tree.available("alone")[GPU] == 3
    assert tree.lent(OWN)[GPU] == 0


def test_what_others_borrow_of_a_queue_is_lent() -> None:
    tree = Tree({OWN: Node("team", gpus(8), {GPU: 1}), "other": Node("team", gpus(2), {GPU: 6})})

    assert (tree.available(OWN)[GPU], tree.lent(OWN)[GPU]) == (3, 4)


def test_a_circle_of_cohorts_has_an_end() -> None:
    tree = Tree(
        {OWN: Node("a", gpus(1)), "other": Node("self")}, {"a": Node("b"), "b": Node("a"), "self": Node("self")}
    )

    assert tree.available(OWN)[GPU] == 1


GROUP = (Group(frozenset({"cpu", "gpu"}), ("a100", "h100")),)


@pytest.mark.parametrize(
    ("free", "pod_sets", "taken"),
    [
        ({("a100", "gpu"): 4, ("h100", "gpu"): 4}, [{"gpu": 8}], None),  # never summed
        ({("a100", "gpu"): 4, ("h100", "gpu"): 4}, [{"gpu": 4}, {"gpu": 4}], {("a100", "gpu"): 4, ("h100", "gpu"): 4}),
        ({("a100", "gpu"): 4}, [{"gpu": 3}, {"gpu": 3}], None),  # pod sets share what is free
        ({("a100", "gpu"): 4, ("h100", "cpu"): 9}, [{"gpu": 1, "cpu": 1}], None),  # one flavor for the group
        ({("a100", "gpu"): 1}, [{"memory": 5}], {}),
    ],
)
def test_a_pod_set_gets_one_flavor_of_a_group(
    free: dict[tuple[str, str], int], pod_sets: list[dict[str, int]], taken: dict[tuple[str, str], int] | None
) -> None:
    assert placed(ResourceRequest(tuple(map(PodSet, pod_sets))), GROUP, free) == taken


def test_what_is_missing_is_the_largest_share_of_an_amount() -> None:
    needs = {GPU: 8, ("a100", "memory"): 1 << 40}

    assert missing(needs, {GPU: 6, ("a100", "memory"): 1 << 39}) == 0.5
    assert missing(needs, {GPU: -8, ("a100", "memory"): 10**999}) == 2.0
    assert missing({GPU: 0}, {GPU: -1}) == missing({}, {}) == 0.0


def test_what_a_queue_does_not_cover_is_unknown_and_pods_need_not_be() -> None:
    request = ResourceRequest((PodSet({"gpu": 1, "memory": 4, "tpu": 0, "pods": 1}),))

    assert unknown(request, GROUP) == {"memory"}


def test_a_chain_of_cohorts_costs_what_a_few_cost() -> None:
    """A worker's administrator makes as many as the list may hold: a decision must neither raise nor take minutes."""
    above = {f"c{n}": Node(f"c{n + 1}", gpus(1)) for n in range(20_000)}
    tree = Tree({OWN: Node("c0", gpus(8))}, above)

    assert 8 <= tree.available(OWN)[GPU] <= 8 + LEVELS
