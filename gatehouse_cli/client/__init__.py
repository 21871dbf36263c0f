"""The portal's API over HTTP: operations and answers as its schema describes them, and a session.

The only place of the command that opens a connection. It prints nothing and asks nobody.
"""
