"""``PlanForm``: waves and guards in fields; ``read_plan`` says what is wrong, beside each field."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, TypeVar

from django import forms
from django.core.exceptions import ValidationError

from policies.change_sets.rollout.dwell import read_dwell
from policies.change_sets.rollout.members import PlanError
from policies.change_sets.rollout.plan import MODE_ORDER, GuardKind, OnTrip, read_plan
from portal.pages.changes.rules.form import typed_names
from portal.pages.changes.sets.rollout.rows import OBSERVED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from policies.change_sets.rollout.members import PlanProblem
    from policies.change_sets.rollout.plan import RolloutPlan
    from policies.services.changes.rollout import PlacedItem
    from portal.pages.changes.sets.rollout.rows import Row, TypedPlan

    RowForm = TypeVar("RowForm", bound=forms.Form)

_LONGEST: Final = 10_000
_PLAIN: Final = {"autocomplete": "off", "spellcheck": "false"}
_NO_DWELL: Final = "Write a number with its unit: 2h, 30m, 1h30m, 1d."
_NO_LABEL: Final = "Write each label with its value: tier=web"
_ROW: Final = re.compile(r"(waves|guards)\[([0-9]+)\]\.([a-z]+)(?:\[([0-9]+)\])?")
KINDS: Final = {
    GuardKind.DENIALS_PER_OWNER: "New denials per owner",
    GuardKind.WARNINGS_PER_OWNER: "New warnings per owner",
    GuardKind.DENIALS_OF: "Denials of workloads",
    GuardKind.DENY_RATE: "Denied requests, per cent",
    GuardKind.LATENCY: "Response time p99, ms",
    GuardKind.FAILURES: "Failures",
}


def _text(label: str, hint: str = "", **more: Any) -> forms.CharField:
    # A blank as the placeholder lets the style sheet see that a field is empty.
    widget = forms.TextInput(attrs={**_PLAIN, "placeholder": hint or " "})
    return forms.CharField(label=label, required=False, max_length=_LONGEST, widget=widget, **more)


class WaveForm(forms.Form):
    """The selectors of a wave, and how long each of its stages lasts."""

    clusters = _text("Clusters", "all")
    namespaces = _text("Namespaces", "all")
    labels = _text("Labels", "any")
    percent = _text("Per cent")
    audit = _text("Audit for", "no such stage")
    warn = _text("Warn for", "no such stage")
    enforce = _text("Enforce for", "0")

    def clean_labels(self) -> dict[str, str]:
        """Labels with their values."""
        found: dict[str, str] = {}
        for word in typed_names(self.cleaned_data["labels"]):
            name, separator, value = word.partition("=")
            if not separator or not name:
                raise ValidationError(_NO_LABEL, code="invalid")
            found[name] = value
        return found

    def clean_audit(self) -> int | None:
        """Its seconds; None: there is no such stage."""
        return _seconds(self.cleaned_data["audit"])

    def clean_warn(self) -> int | None:
        """Its seconds; None: there is no such stage."""
        return _seconds(self.cleaned_data["warn"])

    def clean_enforce(self) -> int:
        """Its seconds; the last stage is always there."""
        return _seconds(self.cleaned_data["enforce"]) or 0

    @property
    def modes(self) -> list[str]:
        """The modes of its stages, in their order."""
        return [
            each.value
            for each in MODE_ORDER
            if each.value in self.errors or self.cleaned_data.get(each.value) is not None
        ]

    def to_json(self) -> dict[str, Any]:
        """The wave as ``read_plan`` takes it."""
        sent = self.cleaned_data
        return {
            "clusters": typed_names(sent.get("clusters", "")),
            "namespaces": typed_names(sent.get("namespaces", "")),
            "labels": sent.get("labels", {}),
            "percent": _number(sent.get("percent") or "100"),
            "stages": [{"mode": mode, "dwell": sent.get(mode, 0)} for mode in self.modes],
        }


class GuardForm(forms.Form):
    """What a guard watches, and above which figure it trips."""

    kind = forms.ChoiceField(label="Watches", choices=[(k.value, v) for k, v in KINDS.items()])
    above = _text("Trips above")
    owners = _text("Workloads")

    def to_json(self) -> dict[str, Any]:
        """The guard as ``read_plan`` takes it."""
        sent = self.cleaned_data
        return {
            "kind": sent.get("kind"),
            "above": _number(sent.get("above") or "0"),
            "owners": typed_names(sent.get("owners", "")),
        }


class PlanForm:
    """The forms of all rows; only those of a plan that is to be read say what is wrong."""

    def __init__(self, typed: TypedPlan, *, is_read: bool) -> None:
        self.waves = [
            _form(WaveForm, row, f"wave-{index}", is_read=is_read)
            for index, row in enumerate(typed.waves)
        ]
        self.guards = [
            _form(GuardForm, row, f"guard-{index}", is_read=is_read)
            for index, row in enumerate(typed.guards)
        ]
        self.on_trip = typed.on_trip
        self.other: list[str] = []
        """What is wrong with the plan as a whole."""

    def read(self) -> RolloutPlan | None:
        """The plan; None where a field is wrong, which then says so."""
        # Each is asked, so that all errors are shown at once.
        are_valid = [form.is_valid() for form in (*self.waves, *self.guards)]
        raw = {
            "waves": [form.to_json() for form in self.waves],
            "guards": [form.to_json() for form in self.guards],
            "on_trip": self.on_trip,
        }
        try:
            plan = read_plan(raw)
        except PlanError as error:
            for problem in error.problems:
                self._say(problem)
            return None
        return plan if all(are_valid) else None

    def refuse_unobservable(self, placed: Iterable[PlacedItem]) -> bool:
        """Say at a wave's first stage which objects keep it from being observed first."""
        found = [each for each in placed if each.problem and each.problem.code == "not_observed"]
        for each in found:
            form = self.waves[each.wave - 1]
            first = next(mode for mode in form.modes if mode in OBSERVED)
            form.add_error(first, ValidationError(str(each.problem), code="not_observed"))
        return bool(found)

    @property
    def has_errors(self) -> bool:
        """Whether anything is wrong."""
        forms_of_rows: tuple[forms.Form, ...] = (*self.waves, *self.guards)
        return bool(self.other) or any(form.is_bound and form.errors for form in forms_of_rows)

    def _say(self, problem: PlanProblem) -> None:
        """Put a problem beside its field; one that has said what is wrong with it says no more."""
        form, field = self._field_of(problem.path)
        if form is None:
            self.other.append(str(problem))
        elif field not in form.errors:
            form.add_error(field, ValidationError(f"It {problem.message}.", code=problem.code))

    def _field_of(self, path: str) -> tuple[forms.Form | None, str]:
        found = _ROW.match(path)
        if found is None:
            return None, ""
        kind, row, name, index = found.groups()
        if kind == "guards":
            return self.guards[int(row)], name
        wave = self.waves[int(row)]
        return wave, wave.modes[int(index)] if name == "stages" else name


def _form(of: type[RowForm], row: Row, prefix: str, *, is_read: bool) -> RowForm:
    if is_read:
        return of({f"{prefix}-{name}": text for name, text in row.items()}, prefix=prefix)
    return of(initial=dict(row), prefix=prefix)


def _seconds(text: str) -> int | None:
    if not text:
        return None
    try:
        return read_dwell(text)
    except ValueError:
        raise ValidationError(_NO_DWELL, code="invalid") from None


def _number(text: str) -> float | str:
    """A number as it was typed; what is none stays, for ``read_plan`` to refuse."""
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        return text


TRIPS: Final[Mapping[str, str]] = {
    OnTrip.STOP.value: "stops the roll-out where it is",
    OnTrip.REVERT.value: "takes back all that it wrote",
}
