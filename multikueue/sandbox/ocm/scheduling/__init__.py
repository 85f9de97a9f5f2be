"""Which clusters a Placement gets, as a function of values: filters, scores, groups and slices."""
