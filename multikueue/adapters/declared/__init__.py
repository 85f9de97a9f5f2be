"""Job kinds that users declare: from a `Declaration` to a row. Compiling one imports CEL, which takes 0.3 s."""

from __future__ import annotations

from multikueue.adapters.declared.compiling import DeclarationError, declared_kind

__all__ = ["DeclarationError", "declared_kind"]
