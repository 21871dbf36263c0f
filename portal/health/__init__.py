"""Health of the portal: probes, metrics, background work, the key check. No pages."""
