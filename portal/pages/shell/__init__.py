"""What frames every page: navigation, the chosen cluster, the time zone, counts of waiting work."""
