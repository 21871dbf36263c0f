"""Problems, with their lines, of a BundleObject that the models refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policies.validators import errors_by_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.core.exceptions import ValidationError

    from policies.manifests.documents import Problem
    from policies.manifests.objects import BundleObject


def refusal_problems(
    item: BundleObject, error: ValidationError, hints: Mapping[str, str] | None = None
) -> list[Problem]:
    """The problems of an object that the models refuse; ``hints`` by code of the error."""
    return [
        item.problem(path, entry["message"], (hints or {}).get(entry["code"], ""), entry["code"])
        for path, entries in errors_by_path(error).items()
        for entry in entries
    ]
