"""Pages about access: people and their roles, legal holds."""
