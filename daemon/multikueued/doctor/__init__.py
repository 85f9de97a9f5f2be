"""`multikueue doctor`: reads both sides, runs the checks of `multikueued.reports.doctor`, prints what they find."""
