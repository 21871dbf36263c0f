"""Who signs in: hashes of passwords and how many at a time, throttling. No pages, no roles."""
