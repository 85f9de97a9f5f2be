"""An exec plugin as a value: a command that prints credentials (client.authentication.k8s.io)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Final

import attrs

V1: Final = "client.authentication.k8s.io/v1"
API_VERSIONS: Final = (V1, "client.authentication.k8s.io/v1beta1")
EXEC_INFO: Final = "KUBERNETES_EXEC_INFO"
"""The variable that tells a plugin what is asked of it."""


def _words(args: Iterable[str]) -> tuple[str, ...]:
    return tuple(args)


def _variables(env: Mapping[str, str] | Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Sorted by name, so that equal environments are equal. Of two with one name the later counts."""
    return tuple(sorted(dict(env).items()))


@attrs.frozen
class ExecPlugin:
    """A command that prints credentials. Equal values share its runs and what it printed. The repr shows no secret."""

    command: str
    args: tuple[str, ...] = attrs.field(default=(), converter=_words, repr=False)
    env: tuple[tuple[str, str], ...] = attrs.field(default=(), converter=_variables, repr=False)
    """Names and values. Given as a mapping or as pairs."""
    api_version: str = V1
    cluster: str = attrs.field(default="", repr=False)
    """The cluster as JSON text (see `config.cluster_info`) if the plugin asks for it with `provideClusterInfo`."""
    search_path: bool = False
    """Whether a command without a slash is looked up in PATH, as in the operator's own kubeconfig."""
    inherit_env: bool = False
    """Whether it gets the daemon's variables, too; else a fixed PATH, HOME and `env` alone."""

    @property
    def problem(self) -> str:
        """Why it cannot be run; empty: nothing is known. It quotes no argument and no value."""
        if self.api_version not in API_VERSIONS:
            return f'exec plugin: invalid apiVersion "{self.api_version}"'
        if not self.command or not (self.search_path or os.path.isabs(self.command)):
            return f'exec plugin: command "{self.command}" is not an absolute path'
        if any(not name or "=" in name for name, _ in self.env):
            return "exec plugin: a variable of env has no name, or a name with ="
        if "\0" in "".join((self.command, *self.args, *(name + value for name, value in self.env))):
            return "exec plugin: command, args or env hold a NUL character"
        return ""

    def extended(
        self, args: Iterable[str] = (), env: Mapping[str, str] | None = None, *, replace: bool = False
    ) -> ExecPlugin:
        """With more arguments and variables, which a ClusterProfile asks for.

        Args:
            args: put behind its own.
            env: added to its own. Which may be asked for, the operator says: see `AccessProvider.env_names`.
            replace: whether a variable of a profile takes the place of its own with the same name.
        """
        own, more = dict(self.env), env or {}
        merged = {**own, **more} if replace else {**more, **own}
        return attrs.evolve(self, args=(*self.args, *args), env=merged)
