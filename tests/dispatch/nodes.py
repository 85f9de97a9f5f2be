"""Nodes of a worker: quota is not room for a pod."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from tests.dispatch.kueue import Copy


@attrs.define(eq=False)
class _Pods:
    """Of one copy that has quota."""

    copy: Copy
    left: list[int]
    """GPUs of those that no node has."""
    placed: list[tuple[int, int]] = attrs.field(factory=list)
    """The node, and how many of its GPUs."""


class Nodes:
    """Of one flavor. A pod goes to the node with the most free, as with kube-scheduler's usual plugins; one that fits
    nowhere waits, with those of its copy that have a node."""

    def __init__(self, sizes: Sequence[int]) -> None:
        """GPUs of each."""
        self.free = list(sizes)
        self._largest = max(sizes)
        self._pods: dict[Copy, _Pods] = {}

    def start(self, copy: Copy) -> bool:
        """Make its pods, each as large as a node at most; says whether all have a node."""
        whole, rest = divmod(copy.request[0], self._largest)
        pods = self._pods[copy] = _Pods(copy, [self._largest] * whole + [rest] * bool(rest))
        return self._place(pods)

    def stop(self, copy: Copy) -> list[Copy]:
        """Its pods are gone; says for which others all pods have a node now."""
        if pods := self._pods.pop(copy, None):
            for node, gpus in pods.placed:
                self.free[node] += gpus
        return [pods.copy for pods in self._pods.values() if pods.left and self._place(pods)]

    def waits(self, copy: Copy) -> bool:
        """Whether one of its pods has no node."""
        return bool(self._pods[copy].left) if copy in self._pods else False

    def _place(self, pods: _Pods) -> bool:
        still = list[int]()
        for gpus in pods.left:
            node = max(range(len(self.free)), key=self.free.__getitem__)
            if self.free[node] < gpus:
                still.append(gpus)
            else:
                self.free[node] -= gpus
                pods.placed.append((node, gpus))
        pods.left = still
        return not still


def nodes_of(gpus: int, size: int) -> list[int]:
    """As many of that size as there are GPUs for, and a smaller one for the rest."""
    whole, rest = divmod(gpus, size)
    return [size] * whole + [rest] * bool(rest)
