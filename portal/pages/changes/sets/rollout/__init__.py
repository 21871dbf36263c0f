"""The tab Roll-out of a change: the form of its plan, its stages with their figures, its guards."""
