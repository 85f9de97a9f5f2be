"""What the decisions are about: identities, objects, conditions, Workloads, job kinds, copies, how workers stand."""
