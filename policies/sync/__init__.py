"""Between portal and clusters: what is read there, compared with ours, and written. Empty."""
