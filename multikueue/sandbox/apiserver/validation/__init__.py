"""What an object may be: decoding, schemas, CEL rules, and the defaults and rules of builtin kinds.

Imports `kinds` and `status_errors`; `verbs` calls it.
"""
