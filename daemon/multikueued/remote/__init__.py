"""What a job does on its worker, read from the manager: its pods and their logs."""
