"""Keep unsaved drafts for their author, until they are saved or dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policies.models import KeptDraft
from policies.models.kept_draft import MOST

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from policies.drafts.draft import PolicyPlace


def kept(user: User, place: PolicyPlace) -> KeptDraft | None:
    """What this person typed here and has not saved."""
    return KeptDraft.objects.filter(**_names(user, place)).first()


def keep(user: User, place: PolicyPlace, text: str, *, seen: int) -> None:
    """Keep a text in place of the last one; the same text again writes nothing."""
    names = _names(user, place)
    if KeptDraft.objects.filter(**names, text=text, seen=seen).exists():
        return
    KeptDraft.objects.update_or_create(**names, defaults={"text": text, "seen": seen})
    old = KeptDraft.objects.filter(user=user).order_by("-changed", "-pk")
    KeptDraft.objects.filter(pk__in=list(old.values_list("pk", flat=True)[MOST:])).delete()


def drop(user: User, place: PolicyPlace) -> None:
    """Forget it."""
    KeptDraft.objects.filter(**_names(user, place)).delete()


def _names(user: User, place: PolicyPlace) -> dict[str, Any]:
    namespace = place.namespace.name if place.namespace else ""
    names = {"namespace": namespace, "kind": place.kind.name, "name": place.name}
    return {"user": user, "cluster": place.cluster, **names}
