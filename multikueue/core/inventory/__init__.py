"""Inventories: which clusters a MultiKueueConfig lists, chosen by OCM's Placements or by labels of ClusterProfiles."""
