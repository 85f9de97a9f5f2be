"""Admission of new jobs: which queue leads to workers, reviews, and the webhook's registration."""
