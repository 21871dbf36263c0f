"""The supervisor of ``make run``: start web, worker and beat, and stop all of them."""
