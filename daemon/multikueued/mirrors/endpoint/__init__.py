"""Answers the manager's API servers as the kubelet of our nodes: a pipe to the worker that has the pod."""
