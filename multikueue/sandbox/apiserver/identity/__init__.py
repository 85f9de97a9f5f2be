"""Who asks and what they may do: users, service accounts' tokens, RBAC, and the reviews that tell of them.

Imports `verbs` and below; knows no HTTP.
"""
