"""What each verb does to the stored objects, and the garbage collector, which uses the verbs.

Imports `storage`, `apply` and `validation`; knows no HTTP.
"""
