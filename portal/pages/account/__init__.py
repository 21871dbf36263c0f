"""The page of one's own account: password, roles."""
