"""Health of the portal: probes, background work, the key check. No page."""
