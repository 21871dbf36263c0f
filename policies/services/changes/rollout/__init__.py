"""Roll-outs of change sets: plan one, start it, take its stages, stop it and go on."""

from policies.services.changes.rollout.plan import put_plan
from policies.services.changes.rollout.run import advance, due, resume, start, stop

__all__ = ["advance", "due", "put_plan", "resume", "start", "stop"]
