"""Sign-in: password hashing, throttling, accounts. No pages, no roles."""
