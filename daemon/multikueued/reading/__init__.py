"""Reads what stands on the manager for who asks: with own rights, or through its API."""
