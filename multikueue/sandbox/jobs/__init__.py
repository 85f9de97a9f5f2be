"""Runs jobs, mostly without pods: their status changes as if there were some. An ordinary client of the server."""

from __future__ import annotations

from multikueue.sandbox.jobs.deciding import DURATION_ANNOTATION, OUTCOME_ANNOTATION, TRAP_ANNOTATION, RunnerOptions
from multikueue.sandbox.jobs.running import JobRunner

__all__ = ["DURATION_ANNOTATION", "OUTCOME_ANNOTATION", "TRAP_ANNOTATION", "JobRunner", "RunnerOptions"]
