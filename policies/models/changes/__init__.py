"""Tables of change sets: what is proposed, and each step. No service."""
