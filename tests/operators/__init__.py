"""Job kinds against their real controllers: built from Go modules, run on the real API servers of `controlplane`.

Only kubelets are played (`kubelet.py`), and what runs inside pods where a controller asks it (`ray_dashboard.py`).
"""
