"""Hundreds of Jobs at a time on three workers, run by the real Job controller, with failures and evictions."""
