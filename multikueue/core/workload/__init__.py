"""The workload decision: one snapshot in, effects out. Start at `plan.py`."""
