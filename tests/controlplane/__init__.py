"""Real control planes for tests: etcd, kube-apiserver and, when asked for, kube-controller-manager.

Each cluster is a set of child processes of the test run with its own data, certificates, users and RBAC rules.
`README.md` beside this file says how to get the binaries and how to use the planes in a test.
"""
