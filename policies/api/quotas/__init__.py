"""REST of what quotas count: usage, its history, recounts. Quotas as manifests are elsewhere."""
