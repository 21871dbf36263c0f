"""From socket to view: event loop, WSGI bridge, lean stack, TLS, and web processes."""
