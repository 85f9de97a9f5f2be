"""Informers: objects listed, watched and indexed, and what became of those that cannot be read."""
