"""Pages of quotas: the board of all, the history of one."""
