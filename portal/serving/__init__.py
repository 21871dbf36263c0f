"""From a socket to a view: two stacks behind one door, TLS, and processes that come and go."""
