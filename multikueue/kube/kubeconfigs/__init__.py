"""How a cluster is reached: kubeconfigs, the values that are read from them, and what others hand in."""
