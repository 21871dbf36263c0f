"""REST serializers of changes: bodies of their steps, the change with its objects and steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rest_framework import serializers

from policies.api.changes.approval_parts import ChangeReviewSerializer
from policies.change_sets.states import STATES, STEPS
from policies.manifests import diff_in_words
from policies.models.changes.change_set import LONGEST_NOTE, MOST_ITEMS
from policies.object_rules import MODES
from policies.openapi import OBJECT, Answered, DescribedField, or_null
from policies.rest import DocumentsField
from policies.services import KINDS
from policies.services.changes import shown_review, visible_items, visible_steps

if TYPE_CHECKING:
    from policies.models import ChangeItem, ChangeSet

_HASH: Final = "[0-9a-f]{64}"


class ChangeItemSerializer(Answered, serializers.Serializer[Any]):
    """One object of a change: its base and its content."""

    id = serializers.IntegerField()
    cluster = serializers.CharField()
    kind = serializers.CharField()
    namespace = serializers.CharField()
    name = serializers.CharField()
    action = serializers.ChoiceField(("add", "change", "delete"))
    base_revision = serializers.IntegerField(help_text="0: there was no object")
    base = DescribedField(or_null(OBJECT))
    content = DescribedField(or_null(OBJECT), help_text="null: the object is deleted")
    changes = serializers.ListField(child=serializers.CharField(), help_text="in words")
    written = serializers.IntegerField(
        allow_null=True, help_text="the revision that publishing wrote"
    )


class ChangeStepSerializer(Answered, serializers.Serializer[Any]):
    """One step of a change."""

    step = serializers.ChoiceField(STEPS)
    state_before = serializers.ChoiceField(STATES)
    state_after = serializers.ChoiceField(STATES)
    user = serializers.CharField()
    note = serializers.CharField()
    content_hash = serializers.CharField(help_text="the content that the step was about")
    created = serializers.DateTimeField()


class ChangeSerializer(Answered, serializers.Serializer[Any]):
    """A change: proposed writes of policies that are published and reverted together."""

    id = serializers.IntegerField(
        read_only=True, allow_null=True, help_text="null only where ?dryRun=All shows a new one"
    )
    title = serializers.CharField(max_length=200)
    reason = serializers.CharField(required=False, allow_blank=True, max_length=LONGEST_NOTE)
    ticket = serializers.CharField(
        required=False, allow_blank=True, max_length=500, help_text="a key, or a link"
    )
    author = serializers.CharField(read_only=True)
    state = serializers.ChoiceField(STATES, read_only=True)
    steps_allowed = serializers.ListField(
        child=serializers.ChoiceField(STEPS), read_only=True, help_text="in this state"
    )
    content_hash = serializers.CharField(
        read_only=True, help_text="SHA-256 of all bases and contents"
    )
    unreviewed = serializers.BooleanField(
        read_only=True, help_text="published without approvals, and reviewed by nobody else yet"
    )
    created = serializers.DateTimeField(read_only=True)
    updated = serializers.DateTimeField(read_only=True)


class ChangeDetailSerializer(ChangeSerializer):
    """A change with its objects and steps."""

    objects = ChangeItemSerializer(many=True, read_only=True)
    hidden = serializers.IntegerField(
        read_only=True, help_text="so many objects lie where the caller sees nothing"
    )
    steps = ChangeStepSerializer(many=True, read_only=True)
    review = ChangeReviewSerializer(read_only=True)

    def to_representation(self, instance: ChangeSet) -> dict[str, Any]:
        """Add the objects and notes that the caller may see, and all steps."""
        user = self.context["request"].user
        items = list(visible_items(instance, user))
        steps = visible_steps(instance, user)
        return {
            **ChangeSerializer(instance).data,
            "objects": [_render_item(item) for item in items],
            "hidden": instance.items.count() - len(items),
            "steps": ChangeStepSerializer(steps, many=True).data,
            "review": ChangeReviewSerializer(shown_review(instance, user=user)).data,
        }


class ObjectOfKindSerializer(serializers.Serializer[Any]):
    """The name of a policy, and the revision that was seen of it."""

    kind = serializers.ChoiceField(tuple(KINDS))
    namespace = serializers.CharField(max_length=63)
    name = serializers.CharField(max_length=253)
    revision = serializers.IntegerField(
        required=False, min_value=0, help_text="by default the stored one"
    )


class ProposalsSerializer(Answered, serializers.Serializer[Any]):
    """Writes of one cluster that are put into a change."""

    cluster = serializers.CharField(max_length=63)
    documents = DocumentsField(required=False)
    namespace = serializers.CharField(
        required=False, max_length=63, help_text="for documents that name none"
    )
    bases = ObjectOfKindSerializer(
        many=True,
        required=False,
        help_text="revisions on which documents are based, by default the stored ones",
    )
    deletions = ObjectOfKindSerializer(many=True, required=False)
    mode = serializers.ChoiceField(MODES, required=False)
    policies = ObjectOfKindSerializer(
        many=True, required=False, help_text="stored policies that get the mode"
    )


class TakeOutSerializer(Answered, serializers.Serializer[Any]):
    """Objects that are taken out of a change."""

    objects = serializers.ListField(
        child=serializers.IntegerField(min_value=0, max_value=2**62),
        max_length=MOST_ITEMS,
        help_text="their ids",
    )


class MergeSerializer(Answered, serializers.Serializer[Any]):
    """An object whose base has moved."""

    object = serializers.IntegerField(min_value=0, max_value=2**62, help_text="its id")
    keep = serializers.ChoiceField(
        ("mine", "theirs"), required=False, help_text="the side that wins conflicts"
    )


class StepNoteSerializer(Answered, serializers.Serializer[Any]):
    """What is said of a step."""

    note = serializers.CharField(required=False, allow_blank=True, max_length=LONGEST_NOTE)


class SeenStepSerializer(StepNoteSerializer):
    """What is said of a step, and the content that was seen."""

    content_hash = serializers.RegexField(
        f"^{_HASH}$", required=False, help_text="refuses another content than this"
    )


class CommentSerializer(Answered, serializers.Serializer[Any]):
    """A comment."""

    note = serializers.CharField(max_length=LONGEST_NOTE)


def _render_item(item: ChangeItem) -> dict[str, Any]:
    return {
        "id": item.pk,
        "cluster": item.cluster,
        "kind": item.kind,
        "namespace": item.namespace,
        "name": item.name,
        "action": item.action,
        "base_revision": item.base_revision,
        "base": item.base,
        "content": item.content,
        "changes": diff_in_words.changes(item.base, item.content),
        "written": item.written,
    }
