"""The machinery of any controller: work queue, back-off, list and watch, lease. Callers pass the time."""
