"""Patches of all formats, server-side apply, and who owns which field."""
