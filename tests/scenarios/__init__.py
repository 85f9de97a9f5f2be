"""Kueue's conformance scenarios (`spec/core.md`, appendix D) on the sandbox: each test is named after its line.

The real manager runs on virtual time against clusters in memory. `bare` workers have no Kueue: the test plays it.
"""
