"""Objects, revisions and watches: what the server remembers.

Imports `kinds`, `status_errors` and `faults`; the verbs read and write it.
"""
