"""Gap: what is missing until policies are enforced as meant, with the command that mends it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from engine.policy import Authority
from policies.models import ResourceQuota, ResourceQuotaRow
from sync.connect.permissions import COUNT_VERBS, resource_in, where_counted
from sync.installation import canary
from sync.inventory import cluster_states
from sync.models import ClusterConnection
from sync.passes.advice import connection_hint

if TYPE_CHECKING:
    import datetime as dt

    from policies.models import Cluster
    from sync.models import WebhookHealth

QUOTAS_NAMED: Final = 5
"""The most quotas that one gap names."""
FOLLOWER_AGE: Final = 10.0
"""Seconds; an older heartbeat of a follower counts as none."""
DISABLE_PLUGINS: Final = "kube-apiserver --disable-admission-plugins=LimitRanger,ResourceQuota"


class GapCode(StrEnum):
    """What is missing; stable words, in the order in which they are best mended."""

    CONNECTION = "connection"
    RIGHT = "right"
    WEBHOOK = "webhook"
    IMPORT = "import"
    OWNERSHIP = "ownership"
    PENDING = "pending"
    DIFFERENCE = "difference"
    UNCOUNTED = "uncounted"
    LEFT_OUT = "left-out"
    PLUGIN = "plugin"
    FOLLOWER = "follower"


class GapRemedy(StrEnum):
    """What mends a gap, for pages that have a form for it; ``NONE``: the command alone."""

    CONNECT = "connect"
    RESUME = "resume"
    SYNCHRONIZE = "synchronize"
    OWN = "own"
    RESOLVE = "resolve"
    SWITCH = "switch"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """One thing that is missing; without a namespace it concerns the whole cluster.

    ``is_open``: because of it, nobody enforces what the portal should.
    """

    code: GapCode
    words: str
    command: str = ""
    remedy: GapRemedy = GapRemedy.NONE
    namespace: str = ""
    is_open: bool = False

    def to_json(self) -> dict[str, Any]:
        """The gap for machines."""
        return {
            "code": self.code.value,
            "namespace": self.namespace,
            "message": self.words,
            "command": self.command,
            "remedy": self.remedy.value,
            "isOpen": self.is_open,
        }


def manage(command: str, cluster: Cluster, *words: str) -> str:
    """A command line of the portal about a cluster."""
    return " ".join(["python manage.py", command, cluster.name, *words])


def install_command(cluster: Cluster) -> str:
    """The command that installs or renews what the cluster needs."""
    words = ("--ca-file ca.crt", "| kubectl apply --server-side -f -")
    return manage("cluster_manifests", cluster, *words)


def connection_gap(cluster: Cluster) -> Gap | None:
    """The gap of a cluster that is not connected, not reached or paused."""
    connection: ClusterConnection | None = getattr(cluster, "connection", None)
    connect = manage("connect_cluster", cluster, "--kubeconfig FILE")
    if connection is None:
        return Gap(
            code=GapCode.CONNECTION,
            words="The cluster is not connected: the portal neither reads nor writes it, and "
            "cannot tell whether the API server asks it.",
            command=connect,
            remedy=GapRemedy.CONNECT,
        )
    if connection.is_paused:
        return Gap(
            code=GapCode.CONNECTION,
            words="The sync is paused: what changes there is not known here, and nothing is "
            "written there.",
            command=manage("sync", cluster, "--resume"),
            remedy=GapRemedy.RESUME,
        )
    if connection.state == ClusterConnection.State.OK:
        return None
    commands = {
        ClusterConnection.State.FORBIDDEN: install_command(cluster),
        ClusterConnection.State.NEW: manage("sync", cluster, "--import --follow"),
        ClusterConnection.State.UNREACHABLE: manage("sync", cluster, "--follow"),
    }
    state = ClusterConnection.State(connection.state)
    is_to_connect = state not in commands
    return Gap(
        code=GapCode.CONNECTION,
        words=connection_hint(connection),
        command=commands.get(state, connect),
        remedy=GapRemedy.CONNECT if is_to_connect else GapRemedy.SYNCHRONIZE,
    )


def right_gaps(cluster: Cluster) -> list[Gap]:
    """The permissions that the last test missed, with the quotas that are not counted for it."""
    connection: ClusterConnection | None = getattr(cluster, "connection", None)
    missing = connection.missing_permissions if connection else []
    if not missing:
        return []
    quotas = _quotas_by_resource(cluster)
    return [
        Gap(
            code=GapCode.RIGHT,
            words=_right_in_words(text, quotas),
            command=install_command(cluster),
        )
        for text in missing
    ]


def _right_in_words(text: str, quotas: dict[str, set[tuple[str, str]]]) -> str:
    resource, namespace = resource_in(text)
    counting = sorted(q for q in quotas.get(resource, ()) if namespace in ("", q[0]))
    if not counting or not any(verb in text for verb in COUNT_VERBS):
        return f"The portal's account may not {text}."
    names = ", ".join("/".join(quota) for quota in counting[:QUOTAS_NAMED])
    more = f" and {len(counting) - QUOTAS_NAMED} more" if len(counting) > QUOTAS_NAMED else ""
    return (
        f"The portal's account may not {text}: {resource} are not counted reliably in "
        f"{'quota' if len(counting) == 1 else 'quotas'} {names}{more}."
    )


def _quotas_by_resource(cluster: Cluster) -> dict[str, set[tuple[str, str]]]:
    """The quotas, as namespace and name, by the resource that they count."""
    rows = ResourceQuotaRow.objects.filter(quota__namespace__cluster=cluster).order_by()
    found: dict[str, set[tuple[str, str]]] = {}
    for namespace, quota, name in rows.values_list(
        "quota__namespace__name", "quota__name", "resource"
    ):
        for resource in where_counted([(namespace, [name])]):
            found.setdefault(str(resource), set()).add((namespace, quota))
    return found


def webhook_gaps(cluster: Cluster, now: dt.datetime) -> list[Gap]:
    """What keeps the API server from asking the portal, or leaves it in doubt."""
    state = cluster_states.webhook_state(cluster, now)
    health: WebhookHealth | None = getattr(cluster, "webhook_health", None)
    if state == cluster_states.WORKING:
        return _silent_gap(cluster, health)
    words = cluster_states.webhook_words(health) if health else {}
    is_missing = any(word == "missing" for word in words.values())
    install, check = install_command(cluster), manage("cluster_enforcement", cluster, "--check")
    is_connected = hasattr(cluster, "connection")
    if state == cluster_states.FAILING_OPEN:
        text = "Pods are let in without the portal: the API server does not call its webhooks."
        gap = Gap(code=GapCode.WEBHOOK, words=text, command=install, is_open=True)
    elif is_missing:
        missing = ", ".join(sorted(name for name, word in words.items() if word == "missing"))
        text = f"Not installed: {missing}."
        gap = Gap(code=GapCode.WEBHOOK, words=text, command=install, is_open=True)
    elif state == cluster_states.CHANGED:
        changed = "; ".join(f"{name} is {word}" for name, word in words.items() if word != "ok")
        text = f"The webhooks are not as installed: {changed}."
        gap = Gap(code=GapCode.WEBHOOK, words=text, command=install)
    else:
        age = "recently" if state == cluster_states.OUT_OF_DATE else "yet"
        text = f"No canary was refused {age}: it is not proven that the API server asks the portal."
        gap = Gap(code=GapCode.WEBHOOK, words=text, command=check if is_connected else install)
    return [gap, *_silent_gap(cluster, health)]


def _silent_gap(cluster: Cluster, health: WebhookHealth | None) -> list[Gap]:
    if health is None or health.mutating_asked is not False:
        return []
    text = "The mutating webhook is not called: pods get no defaults, and no metadata is set."
    return [Gap(code=GapCode.WEBHOOK, words=text, command=install_command(cluster))]


def import_gap(cluster: Cluster) -> Gap | None:
    """The gap of a connected cluster that was never read as a whole."""
    timetable = getattr(cluster, "sync_state", None)
    if not hasattr(cluster, "connection") or (timetable and timetable.last_success):
        return None
    return Gap(
        code=GapCode.IMPORT,
        words="The cluster was not read yet: its namespaces and policies are not known here. "
        "The first import writes nothing there.",
        command=manage("sync", cluster, "--import --follow"),
        remedy=GapRemedy.SYNCHRONIZE,
    )


def uncounted_gaps(cluster: Cluster) -> list[Gap]:
    """Quotas with names whose objects are not counted yet."""
    rows = ResourceQuota.objects.filter(namespace__cluster=cluster).exclude(uncounted=[])
    return [
        Gap(
            code=GapCode.UNCOUNTED,
            words=f"Quota {namespace}/{name} refuses whatever needs {', '.join(names)} until the "
            "existing objects are counted.",
            command=manage("sync", cluster, "--follow"),
            remedy=GapRemedy.SYNCHRONIZE,
            namespace=namespace,
        )
        for namespace, name, names in rows.order_by("namespace__name", "name").values_list(
            "namespace__name", "name", "uncounted"
        )
    ]


def plugin_gap(cluster: Cluster) -> Gap | None:
    """The gap of a cluster whose own quota plugin was seen at work beside the portal."""
    if cluster.authority != Authority.PORTAL or not is_quota_plugin_seen(cluster):
        return None
    return Gap(
        code=GapCode.PLUGIN,
        words="The API server's own ResourceQuota plugin refused a canary: it is on, and the "
        "portal enforces too. Switch the plugins off, or leave the enforcement to them.",
        command=DISABLE_PLUGINS,
        remedy=GapRemedy.SWITCH,
    )


def is_quota_plugin_seen(cluster: Cluster) -> bool:
    """Whether the last canary was refused by the API server's own quota plugin."""
    health: WebhookHealth | None = getattr(cluster, "webhook_health", None)
    return health is not None and canary.is_of_quota_plugin(health.canary_message)


def follower_gap(cluster: Cluster, now: dt.datetime) -> Gap | None:
    """The gap of a connected cluster that no follower watches."""
    connection: ClusterConnection | None = getattr(cluster, "connection", None)
    if connection is None or connection.is_paused:
        return None
    follower = getattr(cluster, "follower", None)
    heartbeat = follower.heartbeat if follower else None
    if heartbeat and (now - heartbeat).total_seconds() < FOLLOWER_AGE:
        return None
    problem = f" ({follower.problem})" if follower and follower.problem else ""
    return Gap(
        code=GapCode.FOLLOWER,
        words=f"No process follows the cluster{problem}: what changes there is known only after "
        "the next pass.",
        command="python manage.py follow",
    )
