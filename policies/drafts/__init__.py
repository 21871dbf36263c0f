"""A policy being written: its text, its form, its problems and its preview. No page, no request."""
