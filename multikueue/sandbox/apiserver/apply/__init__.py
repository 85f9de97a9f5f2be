"""Patches that know the schema: strategic merge, and server-side apply with who owns which field.

Imports `kinds` and `status_errors`; `verbs` calls it.
"""
