"""The job kinds that the user's settings declare, as the clusters of the sandbox play them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import attrs
import click

from multikueue import GVK, JobKind, RuleError, SandboxError, SettingsError
from multikueue.adapters import Stamp
from multikueue.adapters.declaration import Declaration
from multikueue.adapters.registry import AVAILABLE as BUILTIN_ROWS
from multikueue.sandbox.kinds import AVAILABLE, SandboxKind
from multikueue.sandbox.kinds.declared import kind_of_row
from multikueued.commands.options import FILE
from multikueued.demo.jobs import Submission, kinds_named
from multikueued.settings.file import load_settings

F = TypeVar("F", bound=Callable[..., Any])

_STAMP: Final = Stamp(origin="multikueue", workload="rehearsal", attempt="1")


def config_option(command: F) -> F:
    """The option --config."""
    meaning = "Settings of the daemon: know the kinds that they declare, and without --kind use these."
    return click.option("--config", type=FILE, help=meaning)(command)


@attrs.frozen
class OwnKinds:
    """What is declared, by kind."""

    rows: Mapping[GVK, JobKind] = attrs.field(factory=dict)
    declarations: Mapping[GVK, Declaration] = attrs.field(factory=dict)
    played: Mapping[GVK, SandboxKind] = attrs.field(factory=dict)

    @classmethod
    def declared_in(cls, file: Path | None) -> OwnKinds:
        """The kinds that a settings file declares; none without one.

        Raises:
            SettingsError: it cannot be used, or declares none, or one that the sandbox cannot play.
        """
        if file is None:
            return cls()
        # Imported here because the CEL compiler takes 0.3 s to import.
        from multikueue.adapters.declared import declared_kind

        known, own = {kind.resource.gvk: kind for kind in AVAILABLE}, cls({}, {}, {})
        for number, declaration in enumerate(load_settings(file).settings.external_frameworks):
            row = declared_kind(declaration, f"externalFrameworks[{number}]")
            gvk = row.resource.gvk
            try:
                played = known[gvk] if _fits(known.get(gvk), row) else kind_of_row(row)
            except SandboxError as error:
                raise SettingsError(f"{file}: {error}") from error
            own = cls({**own.rows, gvk: row}, {**own.declarations, gvk: declaration}, {**own.played, gvk: played})
        if not own.rows:
            raise SettingsError(f"{file}: declares no kind of job: list yours under externalFrameworks")
        return own

    @property
    def available(self) -> tuple[SandboxKind, ...]:
        """All kinds there are."""
        others = (kind for kind in AVAILABLE if kind.resource.gvk not in self.played)
        return (*others, *self.played.values())

    def named(self, names: Iterable[str]) -> tuple[SandboxKind, ...]:
        """The kinds of these names; without any those that are declared, or else batch Jobs.

        Raises:
            SettingsError: there is no such kind.
        """
        chosen = tuple(names)
        return (
            kinds_named(chosen or ("job",), self.available) if chosen or not self.played else (*self.played.values(),)
        )

    def check_copies(self, jobs: Iterable[Submission], *, advice: str) -> None:
        """Refuse jobs of which no copy can be made: they would wait, Rejected, until the demo gives up.

        Raises:
            SettingsError: there is one.
        """
        for job in jobs:
            gvk = job.kind.resource.gvk
            row = self.rows.get(gvk) or next((builtin for builtin in BUILTIN_ROWS if builtin.resource.gvk == gvk), None)
            if row is None:
                continue
            try:
                if refused := row.refused(job.objects[0]):
                    raise RuleError(refused)
                row.copy(job.objects[0], _STAMP)
            except RuleError as error:
                raise SettingsError(
                    f'{job.kind.resource.gvk.kind} "{job.name}" cannot be copied: {error}: {advice}'
                ) from error


def _fits(kind: SandboxKind | None, row: JobKind) -> bool:
    """Whether the sandbox's own row of the kind has the fields where the declaration says."""
    if kind is None or row.workload_only or row.copies.suspend not in (None, kind.suspend):
        return False
    by_label = ("metadata", "labels", kind.managed_by_label) if kind.managed_by_label else None
    return row.delegation.path in (kind.managed_by, by_label) and row.delegation.path is not None
