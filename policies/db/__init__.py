"""Below Django's ORM: pipelined statements, rows read later, the server's clock. No table."""
