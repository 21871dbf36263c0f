"""Roll-outs of change sets: plan one, start it, take its stages, stop it and go on."""

from policies.services.changes.rollout.plan import PlacedItem, place_items, put_plan
from policies.services.changes.rollout.run import advance, resume, start, stop
from policies.services.changes.rollout.trip import TRIPPED_ELSEWHERE, trip

__all__ = [
    "TRIPPED_ELSEWHERE",
    "PlacedItem",
    "advance",
    "place_items",
    "put_plan",
    "resume",
    "start",
    "stop",
    "trip",
]
