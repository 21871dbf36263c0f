"""``read_test``: the one test of a text as a row that may be saved, or problems at its lines."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Final

from django.core.exceptions import ValidationError

from policies import services
from policies.manifests.bundle import read_bundle
from policies.manifests.documents import ManifestError, Problem
from policies.manifests.refusals import refusal_problems
from policies.manifests.sources import Source
from policies.models import KeptTest
from policies.validators import errors_by_path

if TYPE_CHECKING:
    from collections.abc import Sequence

SOURCE: Final = "YAML"
LONGEST: Final = 300_000
"""Characters of the longest text that is read."""


def read_test(text: str, test: KeptTest) -> KeptTest:
    """A copy of a row, stored or new, with the content of a text; raises ManifestError."""
    if len(text) > LONGEST:
        raise ManifestError([_of_text(f"longer than {LONGEST} characters")])
    bundle = read_bundle([Source(SOURCE, text)], namespace=test.namespace_name)
    found = [each for each in bundle.objects if each.item.kind == KeptTest.kind]
    is_all = len(bundle.objects) == 1 and bundle.configuration is None
    if len(found) != 1 or not is_all or bundle.others or bundle.classes:
        message = f"there must be exactly one {KeptTest.kind} here, and nothing else"
        raise ManifestError([_of_text(message)])
    try:
        read: KeptTest = services.take_over(copy.copy(test), found[0].manifest)
        read.full_clean(validate_constraints=False)
    except ValidationError as error:
        raise ManifestError(refusal_problems(found[0].item, error)) from error
    return read


def problems_of(error: ValidationError) -> Sequence[Problem]:
    """What the store refuses, without lines of a text."""
    return [
        Problem(source=SOURCE, field=path, message=each["message"], code=each["code"])
        for path, errors in errors_by_path(error).items()
        for each in errors
    ]


def _of_text(message: str) -> Problem:
    return Problem(source=SOURCE, line=1, column=1, message=message)
