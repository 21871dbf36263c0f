"""Parts of the supervisor of ``make run``: preparation, and its child processes."""
