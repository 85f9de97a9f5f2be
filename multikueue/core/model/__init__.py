"""The words of the field: identities, objects, Workloads, conditions, job kinds, and what a copy is."""
