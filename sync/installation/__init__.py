"""The installation in a cluster: manifests, webhook configurations, canary, expiry, health."""
