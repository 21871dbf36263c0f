"""Sign-in: password hashing, throttling, client addresses, accounts. No pages, no roles."""
