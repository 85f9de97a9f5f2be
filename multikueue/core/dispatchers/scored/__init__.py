"""The dispatcher that knows where: it offers a Workload where it has room, to the best worker first."""
