"""What cannot be served with. It stands alone, as certificates are read with a library that is slow to import."""

from __future__ import annotations


class UnusableError(ValueError):
    """A certificate or a key cannot be used. The message never holds any of it."""
