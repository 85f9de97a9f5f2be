"""What is played: kubelets, and what runs inside pods where a controller asks it."""
