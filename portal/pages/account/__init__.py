"""The page of one's own account: roles, API tokens, password, sign-in."""
