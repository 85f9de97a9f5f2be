"""The MultiKueueClusters and credentials of the ManagedClusters that OCM's Placements select."""
