"""The home page: figures of all clusters, and what needs attention."""
