"""Whether the portal works: probes, background work, the key check. No page."""
