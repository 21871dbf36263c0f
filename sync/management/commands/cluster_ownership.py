"""`manage.py cluster_ownership`: ownership of a place previewed, taken and released."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError

from policies import services
from policies.management.console import FINDINGS, USAGE, Console, add_user, find_cluster, user_of
from sync.enforcement.ownership_preview import ACTION_WORDS, preview_ownership
from sync.models import SyncOwnership
from sync.passes import resolution

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from policies.models import Cluster
    from sync.enforcement.ownership_preview import PreviewedObject

    Place = dict[str, str]

_HELP = """\
Let the portal write a cluster, a namespace or one object of it; or end that.

  manage.py cluster_ownership prod preview                     what it would write, as last seen
  manage.py cluster_ownership prod take --namespace team       write the policies of a namespace
  manage.py cluster_ownership prod take                        write those of the whole cluster
  manage.py cluster_ownership prod take --namespace team --object LimitRange/limits
  manage.py cluster_ownership prod release --namespace team    the objects stay as they are

The preview compares both sides as they were last seen and sends nothing; after taking, manage.py
sync prod --preview asks the API server itself. Taking what is owned already changes nothing.
Exit code 0: done, or shown; 1: it is not owned by itself, so nothing was released; 2: wrong usage.
"""
_ACTIONS: Final = ("preview", "take", "release")


class Command(Console):
    """``manage.py cluster_ownership``."""

    help = _HELP

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        add = parser.add_argument
        add("cluster", help="the cluster's name")
        add("action", choices=_ACTIONS, help="what to do")
        add("--namespace", default="", help="only this namespace (default: the whole cluster)")
        add("--object", default="", metavar="KIND/NAME", help="only this object of the namespace")
        add_user(parser)
        add("-o", "--output", choices=("text", "json"), default="text", help="of the preview")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Preview, take or release the place that the options name."""
        cluster, place = find_cluster(options["cluster"]), _place(options)
        try:
            # The same checks as before taking, so that a preview of a wrong name says so.
            resolution.require_place(**place)
            if options["action"] != "release" and place["namespace"]:
                resolution.require_known_namespace(cluster, place["namespace"])
            if options["action"] == "preview":
                self._preview(cluster, place, options["output"])
            elif options["action"] == "take":
                self._take(cluster, place, user_of(options["user"]))
            else:
                self._release(cluster, place, user_of(options["user"]))
        except ValidationError as error:
            raise CommandError(" ".join(error.messages), returncode=USAGE) from error

    def _take(self, cluster: Cluster, place: Place, user: str) -> None:
        with services.policy_write(cluster):
            was_owned = SyncOwnership.objects.filter(cluster=cluster, **place).exists()
            resolution.take_ownership(cluster, user, **place)
        happened = "already owned" if was_owned else "owned from now on"
        self.stdout.write(f"{_in_words(cluster, place)}: {happened}")

    def _release(self, cluster: Cluster, place: Place, user: str) -> None:
        if not resolution.release_ownership(cluster, user, **place):
            message = f"{_in_words(cluster, place)} is not owned by itself: nothing was released"
            raise CommandError(message, returncode=FINDINGS)
        self.stdout.write(f"{_in_words(cluster, place)}: released, its objects stay as they are")

    def _preview(self, cluster: Cluster, place: Place, output: str) -> None:
        found = preview_ownership(cluster, **place)
        if output == "json":
            self.stdout.write(json.dumps([each.to_json() for each in found], indent=2))
            return
        changed = [each for each in found if each.verdict.action != "none"]
        for each in changed:
            self._print(each)
        summary = f"{len(changed)} of {len(found)} objects would change"
        self.stdout.write(f"{_in_words(cluster, place)}: {summary}; nothing was written")

    def _print(self, previewed: PreviewedObject) -> None:
        verdict = previewed.verdict
        self.stdout.write(f"{previewed.key}: {ACTION_WORDS[verdict.action]}")
        for each in verdict.differences:
            if each.field:
                self.stdout.write(f"  {each.field}: ours {each.a}, theirs {each.b}")


def _place(options: dict[str, Any]) -> Place:
    kind, slash, name = options["object"].partition("/")
    if options["object"] and not (kind and slash and name):
        raise CommandError("--object: give KIND/NAME, as LimitRange/limits", returncode=USAGE)
    return {"namespace": options["namespace"], "kind": kind, "name": name}


def _in_words(cluster: Cluster, place: Place) -> str:
    if place["kind"]:
        return f"{place['kind']} {place['namespace']}/{place['name']} of {cluster.name}"
    namespace = place["namespace"]
    return f"namespace {namespace} of {cluster.name}" if namespace else f"all of {cluster.name}"
