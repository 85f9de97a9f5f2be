"""The builtin kinds: rows, defaults and rules."""
