"""Least privilege: what the daemon needs of its clusters, for its settings. The chart's rules come from here, too."""
