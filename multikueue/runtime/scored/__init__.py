"""What the scored dispatcher does while a manager runs: it follows the workers' queues, and notes who fails."""
