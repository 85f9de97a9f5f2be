"""What is known of a Workload and its copies, before anything is decided."""
