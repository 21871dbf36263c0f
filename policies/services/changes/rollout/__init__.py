"""Roll-outs of change sets: plan one, start it, take its stages, stop it and go on."""

from policies.services.changes.rollout.plan import PlacedItem, place_items, put_plan
from policies.services.changes.rollout.run import advance, resume, see, start, stop, unseen_of
from policies.services.changes.rollout.trip import TRIPPED_ELSEWHERE, trip

__all__ = [
    "TRIPPED_ELSEWHERE",
    "PlacedItem",
    "advance",
    "place_items",
    "put_plan",
    "resume",
    "see",
    "start",
    "stop",
    "trip",
    "unseen_of",
]
