"""What a cluster gets from us: manifests, webhook configurations, canary, expiry, health."""
