"""What the leader sees of workers, published in a ConfigMap for people who may not read their credentials."""
