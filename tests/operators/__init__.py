"""Job kinds against their real controllers: built from Go modules, run on the real API servers of `controlplane`.

Only what is in `playing` is played: kubelets, and what runs inside pods where a controller asks it.
"""
