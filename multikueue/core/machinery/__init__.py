"""Machinery of any controller, as plain data structures that are told the time: queue, back-off, watch, lease."""
