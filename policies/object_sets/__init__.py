"""Sets of objects from a repository: what an apply would do, and doing it. No HTTP, no pages."""
