"""The record explored: words of a search, what is found in bounded time, and counts of it."""
