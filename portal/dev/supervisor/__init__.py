"""``make run``: prepare, start web, worker and beat, tell where to look, stop all of them."""
