"""`multikueue sandbox`: clusters to practise on, without a dispatcher."""
