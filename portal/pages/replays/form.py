"""ReplayForm: proposed policies and the decisions to judge by them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.core.exceptions import PermissionDenied, ValidationError

from admission.replay import work
from admission.replay.access import UnseenPlaceError, require_cluster, require_places
from admission.replay.proposal import ProposalError, read_proposal
from admission.replay.scope import QueryError, ReplayScope, check_query, days_back
from policies.db.clock import read_clock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from admission.models import Replay
    from admission.replay.policies import Proposal

DAYS: Final = {1: "last 24 hours", 7: "last 7 days", 30: "last 30 days", 90: "last 90 days"}
USUAL_DAYS: Final = 7
LONGEST_MANIFESTS: Final = 1_000_000
MOST_NAMED: Final = 3
"""Problems of manifests that the form names; the first ones hide the others anyway."""
NO_POLICY: Final = "Propose at least one LimitRange, MetadataPolicy or ResourceQuota."
TOO_MANY: Final = f"{work.MOST_OPEN} of your replays have not ended. Wait, or cancel one."


class ReplayForm(forms.Form):
    """What ``POST /api/v1/replays/`` takes, without deletions."""

    cluster = forms.ChoiceField()
    days = forms.TypedChoiceField(
        label="Decisions of the", coerce=int, choices=list(DAYS.items()), initial=USUAL_DAYS
    )
    namespaces = forms.CharField(
        required=False,
        max_length=4000,
        help_text="Empty: those of the policies below.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    query = forms.CharField(
        label="Only decisions like",
        required=False,
        max_length=2000,
        help_text="As in Decisions: verdict:denied -user:ada",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    manifests = forms.CharField(
        label="Proposed policies",
        max_length=LONGEST_MANIFESTS,
        help_text="YAML. A policy of the same name is replaced; all others stay as they are.",
        widget=forms.Textarea(attrs={"rows": 14, "spellcheck": "false", "class": "mono"}),
    )

    def __init__(self, user: Any, clusters: Sequence[str], **more: Any) -> None:
        super().__init__(**more)
        self._user = user
        field: Any = self.fields["cluster"]
        field.choices = [(name, name) for name in clusters]
        self.proposal: Proposal | None = None

    def clean_manifests(self) -> str:
        """Read the policies, with all that is wrong in them."""
        text: str = self.cleaned_data["manifests"]
        try:
            self.proposal = read_proposal(text)
        except ProposalError as error:
            raise ValidationError(
                [
                    ValidationError(f"{place.removeprefix('manifests')} {words}".strip(), code)
                    for place, (code, words) in list(error.faults.items())[:MOST_NAMED]
                ]
            ) from error
        if not (self.proposal.namespaces or self.proposal.limited_resources is not None):
            raise ValidationError(NO_POLICY, code="required")
        return text

    def clean_query(self) -> str:
        """Whether the record understands it."""
        query: str = self.cleaned_data["query"]
        try:
            check_query(query)
        except QueryError as error:
            raise ValidationError(str(error), code="invalid") from error
        return query

    def clean(self) -> dict[str, Any]:
        """Whether the person sees all that the replay tells of."""
        sent: dict[str, Any] = super().clean() or {}
        if self.errors or self.proposal is None:
            return sent
        named = sent["namespaces"].replace(",", " ").split()
        sent["namespaces"] = tuple(dict.fromkeys(named))
        cluster, places = sent["cluster"], sent["namespaces"]
        try:
            require_cluster(self._user, cluster)
            require_places(self._user, cluster=cluster, namespaces=places, proposal=self.proposal)
        except UnseenPlaceError as error:
            raise ValidationError({error.field: ValidationError(str(error), error.code)}) from error
        except PermissionDenied as error:
            raise ValidationError({"namespaces": ValidationError(str(error), "denied")}) from error
        return sent

    def request(self) -> Replay | None:
        """Store the replay for a worker; None, with an error, where the person has too many."""
        assert self.proposal is not None  # noqa: S101 - of a valid form
        sent, now = self.cleaned_data, read_clock()
        scope = ReplayScope(
            cluster=sent["cluster"],
            since=days_back(sent["days"], until=now),
            until=now,
            namespaces=sent["namespaces"],
            query=sent["query"],
        )
        try:
            return work.request(scope, self.proposal, user=self._user.get_username())
        except work.TooManyOpenError:
            self.add_error(None, ValidationError(TOO_MANY, "too_many"))
            return None
