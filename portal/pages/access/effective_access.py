"""Effective access of an account or group: a question with its answer and rule, and a matrix."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.contrib.auth.models import Group

from policies import roles
from policies.models import Cluster, Namespace, RoleBinding
from policies.plurals import counted
from portal.pages.access.subjects import visible_bindings
from portal.pages.access.words import place_in_short

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_NAMESPACES: Final = 5000
"""Namespaces that a matrix is made of; beyond, it says that it shows a part."""
MOST_ROWS: Final = 4
"""Places with equal access that have a row each; more of them share one."""
MOST_GIVERS: Final = 3


@dataclass(frozen=True, slots=True)
class Question:
    """Something that a role may allow; without a permission: to see."""

    key: str
    words: str
    permission: str
    is_of_cluster: bool = False
    """Whether it is asked of the cluster as a whole, whatever the namespace."""


QUESTIONS: Final = (
    Question("view", "see policies and decisions", ""),
    *(
        Question(kind, f"edit {words}", roles.writing(kind), is_of_cluster)
        for kind, words, is_of_cluster in (
            ("LimitRange", "LimitRanges", False),
            ("MetadataPolicy", "MetadataPolicies", False),
            ("ResourceQuota", "ResourceQuotas", False),
            ("PriorityClass", "PriorityClasses", True),
            ("ResourceQuotaConfiguration", "limited resources", True),
        )
    ),
    Question("hold", "hold decisions", "admission.add_audithold"),
    Question("settle", "settle drift", "sync.change_syncedobject"),
    Question("pause", "pause syncs", "sync.change_clusterconnection", is_of_cluster=True),
    Question("roles", "give roles", roles.GIVE_ROLES),
)
_BY_KEY: Final = {each.key: each for each in QUESTIONS}
USUAL: Final = _BY_KEY["ResourceQuota"]
COLUMNS: Final = (
    ("View", _BY_KEY["view"]),
    ("Edit", USUAL),
    ("Hold", _BY_KEY["hold"]),
    ("Settle", _BY_KEY["settle"]),
    ("Give roles", _BY_KEY["roles"]),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether it is allowed, the rule, and who could change that."""

    question: Question
    place: str
    is_allowed: bool
    rule: str
    givers: str = ""


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """A place, or several with equal access, and a cell for each column."""

    place: str
    cells: tuple[bool, ...]


def question_of(key: str) -> Question:
    """The question of a key; the usual one for an unknown key."""
    return _BY_KEY.get(key, USUAL)


def bindings_of(subject: Any) -> Sequence[RoleBinding]:
    """All roles of an account, those of its groups included, or of a group."""
    if isinstance(subject, Group):
        return list(subject.role_bindings.all())
    return roles.bindings_of(subject)


def is_allowed(subject: Any, question: Question, place: roles.RoleScope) -> bool:
    """Whether the subject may, by the same rules that pages and the API ask."""
    if question.is_of_cluster:
        place = roles.RoleScope(place.cluster)
    if isinstance(subject, Group):
        covering = [
            each for each in bindings_of(subject) if each.covers(place.cluster, place.namespace)
        ]
        return any(_grants(each, question) for each in covering)
    if not question.permission:
        return roles.sees(subject, place.cluster, place.namespace)
    return roles.may(subject, question.permission, cluster=place.cluster, namespace=place.namespace)


def _grants(binding: RoleBinding, question: Question) -> bool:
    if not question.permission or binding.role == RoleBinding.Role.ADMIN:
        return True
    return question.permission in roles.PERMISSIONS[binding.role]


def answer(subject: Any, question: Question, place: roles.RoleScope, *, reader: Any) -> Answer:
    """The answer with the rule that gives it, as far as the reader knows the rule."""
    allowed = is_allowed(subject, question, place)
    where = place_in_short(place.cluster, place.namespace)
    asked = roles.RoleScope(place.cluster) if question.is_of_cluster else place
    if allowed:
        return Answer(
            question, where, is_allowed=True, rule=_rule(subject, question, asked, reader)
        )
    rule = f"No role of {_name(subject)} grants this in {where}."
    if question.is_of_cluster and place.namespace:
        rule = f"This needs a role for the whole of {place.cluster}."
    return Answer(question, where, is_allowed=False, rule=rule, givers=_givers(asked, reader))


def _rule(subject: Any, question: Question, place: roles.RoleScope, reader: Any) -> str:
    if getattr(subject, "is_superuser", False):
        return "Superusers need no role."
    known = {each.pk for each in visible_bindings(reader)}
    granting = [
        each
        for each in bindings_of(subject)
        if each.covers(place.cluster, place.namespace) and _grants(each, question)
    ]
    for each in granting:
        if each.pk in known:
            group = f", by group {each.group}" if each.group_id and each.user_id is None else ""
            group = "" if isinstance(subject, Group) else group
            return f"Role {each.role} of {place_in_short(each.cluster, each.namespace)}{group}."
    if granting:
        return "By a role of a wider scope than yours."
    return "By a permission of the account itself."


def _givers(place: roles.RoleScope, reader: Any) -> str:
    """Who could give a role there, as far as the reader knows of them."""
    admins = visible_bindings(reader).filter(role=RoleBinding.Role.ADMIN, user__is_active=True)
    here = admins.filter(cluster__in=("", place.cluster), namespace__in=("", place.namespace))
    names = here.order_by("user__username").values_list("user__username", flat=True).distinct()
    return ", ".join(names[:MOST_GIVERS]) or "an administrator"


def _name(subject: Any) -> str:
    return str(subject) if isinstance(subject, Group) else subject.get_full_name() or str(subject)


def parts_of(words: str) -> roles.RoleScope:
    """The cluster and the namespace of "cluster / namespace"."""
    cluster, _, namespace = (part.strip() for part in words.replace("\0", "").partition("/"))
    return roles.RoleScope(cluster, namespace)


def place_of(words: str, *, reader: Any) -> roles.RoleScope | None:
    """The place that a reader wrote as "cluster / namespace"; None for one that is not seen."""
    place = parts_of(words)
    if not place.cluster or not roles.sees(reader, place.cluster, place.namespace or None):
        return None
    return place if Cluster.objects.filter(name=place.cluster).exists() else None


def places_of(reader: Any) -> Sequence[roles.RoleScope]:
    """The namespaces that the reader sees, by cluster and name, up to a bound."""
    namespaces = roles.visible(
        Namespace.objects.order_by("cluster__name", "name"),
        reader,
        cluster="cluster__name",
        namespace="name",
    )
    names = namespaces.values_list("cluster__name", "name")[:MOST_NAMESPACES]
    return [roles.RoleScope(*each) for each in names]


def matrix(subject: Any, places: Sequence[roles.RoleScope]) -> Sequence[MatrixRow]:
    """Rows of places with what may be done there, the most first."""
    bindings = bindings_of(subject)
    cells_by_cover: dict[tuple[int, ...], tuple[bool, ...]] = {}
    places_by_cells: dict[tuple[bool, ...], list[roles.RoleScope]] = defaultdict(list)
    for place in places:
        # What is allowed depends on the covering roles alone: asked once for each set of them.
        cover = tuple(
            i for i, each in enumerate(bindings) if each.covers(place.cluster, place.namespace)
        )
        if cover not in cells_by_cover:
            cells = tuple(is_allowed(subject, question, place) for _, question in COLUMNS)
            cells_by_cover[cover] = cells
        places_by_cells[cells_by_cover[cover]].append(place)
    by_access = sorted(places_by_cells.items(), key=lambda each: -sum(each[0]))
    rows: list[MatrixRow] = []
    for cells, equal_places in by_access:
        rows.extend(_rows_of(cells, equal_places, is_only=len(by_access) == 1, is_rest=bool(rows)))
    return rows


def _rows_of(
    cells: tuple[bool, ...], places: Sequence[roles.RoleScope], *, is_only: bool, is_rest: bool
) -> Sequence[MatrixRow]:
    if any(cells) and len(places) <= MOST_ROWS:
        return [MatrixRow(place_in_short(each.cluster, each.namespace), cells) for each in places]
    number = counted(len(places), "namespaces")
    if is_only:
        return [MatrixRow(f"every namespace ({len(places)})", cells)]
    if is_rest and not any(cells):
        return [MatrixRow(counted(len(places), "other namespaces"), cells)]
    first = ", ".join(place_in_short(each.cluster, each.namespace) for each in places[:2])
    return [MatrixRow(f"{number}: {first}, …" if any(cells) else number, cells)]
