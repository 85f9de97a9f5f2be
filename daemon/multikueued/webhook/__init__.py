"""The webhook that fills in `managedBy`: serving it over TLS, its certificate, and its part in the daemon."""
