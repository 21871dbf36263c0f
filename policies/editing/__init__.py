"""Policies as people edit them: a form beside the YAML, and what would change in words. No page."""
