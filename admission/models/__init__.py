"""Tables of admission: record, retention, tallies, saved views, replays, background work."""

from admission.models.audit_event import AppendOnlyError, AuditEvent, AuditEventQuerySet
from admission.models.background_work import BackgroundWork, note_work
from admission.models.columns import AnswerKind, Verdict, outcome_of
from admission.models.day_tally import DayTally
from admission.models.record_page import CappedCount, RecordPage
from admission.models.replay import Replay
from admission.models.retention import AuditExport, AuditHold, RetentionRun
from admission.models.saved_view import SavedView
from admission.models.tally import Tally

__all__ = [
    "AnswerKind",
    "AppendOnlyError",
    "AuditEvent",
    "AuditEventQuerySet",
    "AuditExport",
    "AuditHold",
    "BackgroundWork",
    "CappedCount",
    "DayTally",
    "RecordPage",
    "Replay",
    "RetentionRun",
    "SavedView",
    "Tally",
    "Verdict",
    "note_work",
    "outcome_of",
]
