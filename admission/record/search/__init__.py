"""Search of the record: its query language, results in bounded time, and counts of them."""
