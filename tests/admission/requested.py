"""Fields of a decision that is put on record without its review, as the writer fills them."""

from __future__ import annotations

from typing import Any

import orjson

from admission.record.write import columns_of_object


def requested(request: dict[str, Any]) -> dict[str, Any]:
    """The request, and the columns that repeat what it says."""
    metadata = request["object"].get("metadata", {})
    return {"request": request, **columns_of_object(metadata, orjson.dumps(request).decode())}
