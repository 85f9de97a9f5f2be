"""Admission of new jobs: reviews, and the webhook's registration."""
