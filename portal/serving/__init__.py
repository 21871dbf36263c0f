"""The web server: processes, sockets, TLS, event loop, WSGI bridge, bounds. No views."""
