"""The manager's view of the pods that run on workers: a Node per worker, and a mirror of each pod of a run.

It is a ring: nothing but the daemon's start and its settings knows it, and with `mirrorPods` off nothing of it runs.
"""
