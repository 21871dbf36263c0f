"""Sign-in: throttled by SignInCount, noted as SignIn, closed to service accounts; Argon2 hashes.

The counts are in the database, shared by all processes. A name is refused only to addresses from
which it has not signed in recently, so that nobody can lock somebody else out.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import Argon2PasswordHasher
from django.contrib.auth.signals import user_logged_in, user_login_failed
from django.core.exceptions import PermissionDenied
from django.dispatch import receiver
from django.utils import timezone
from rest_framework.exceptions import Throttled

from policies.models import ServiceAccount, SignIn, SignInCount
from portal.auth.callers import address_of, group_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from django.http import HttpRequest

WINDOW: Final = timedelta(minutes=5)
MOST_BY_ADDRESS: Final = 50
MOST_BY_NAME: Final = 20
KNOWN_FOR: Final = timedelta(days=30)
AT_A_TIME: Final = 2
PATIENCE: Final = 2.0  # seconds that a further one waits for its turn
_WAY: Final = "gatehouse.way"
turns = threading.BoundedSemaphore(AT_A_TIME)


class ThrottledBackend:
    """The first backend: it authenticates nobody, and stops those who failed too often.

    It also stops service accounts, which have tokens alone, whatever password somebody gave them.
    """

    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, **_: Any
    ) -> None:
        """Raise Throttled or PermissionDenied, or leave the sign-in to the next backend."""
        if request is None or not username:
            return
        address = group_of(address_of(request))
        if SignInCount.objects.failures(_count_key("address", address), WINDOW) >= MOST_BY_ADDRESS:
            raise Throttled(wait=WINDOW.total_seconds())
        is_tried = (
            SignInCount.objects.failures(_count_key("name", username), WINDOW) >= MOST_BY_NAME
        )
        if is_tried and not SignInCount.objects.failures(
            _count_key("known", username, address), KNOWN_FOR
        ):
            raise Throttled(wait=WINDOW.total_seconds())
        if ServiceAccount.objects.filter(user__username=username).exists():
            raise PermissionDenied


@receiver(user_login_failed)
def count_failure(
    credentials: dict[str, Any], request: HttpRequest | None = None, **_: Any
) -> None:
    """Count a failed sign-in for its address and for its name."""
    if request is None:
        return
    SignInCount.objects.count_one(_count_key("address", group_of(address_of(request))), WINDOW)
    username = str(credentials.get("username") or "")
    if username:
        SignInCount.objects.count_one(_count_key("name", username), WINDOW)
    tried = get_user_model().objects.filter(username=username.replace("\0", "")).first()
    _note(tried, request, SignIn.Outcome.FAILED)


@receiver(user_logged_in)
def remember_address(user: Any, request: HttpRequest | None = None, **_: Any) -> None:
    """Let this name always try from this address."""
    if request is not None:
        known_key = _count_key("known", user.get_username(), group_of(address_of(request)))
        SignInCount.objects.count_one(known_key, KNOWN_FOR)
        _note(user, request, SignIn.Outcome.SIGNED_IN)


def come_by(request: HttpRequest, way: SignIn.Way) -> None:
    """Say before a sign-in that it is by another way than name and password."""
    request.META[_WAY] = way


def _note(user: Any, request: HttpRequest, outcome: SignIn.Outcome) -> None:
    usual = SignIn.Way.API if request.path.startswith("/api/") else SignIn.Way.FORM
    way, address = request.META.get(_WAY, usual), address_of(request)
    SignIn.objects.note(user, way=way, address=address, outcome=outcome)


def locked_out(usernames: Iterable[str]) -> set[str]:
    """The names that failed so often that only addresses known for them may try now."""
    keys = {_count_key("name", name): name for name in usernames}
    most = SignInCount.objects.filter(key__in=keys, count__gte=MOST_BY_NAME)
    return {keys[each.key] for each in most.filter(since__gt=timezone.now() - WINDOW)}


def _count_key(*key_parts: str) -> str:
    """A digest: neither names nor addresses are stored, and all keys have one length."""
    return hashlib.sha256("\0".join(key_parts).encode("utf-8", "replace")).hexdigest()


class Argon2(Argon2PasswordHasher):
    """argon2id with 19 MiB, two passes and one lane; two at a time in each process.

    A hash takes its memory and a processor for about 30 ms: sixty at once would block everything.
    Source: OWASP's password storage cheat sheet. Django renews hashes of other costs at sign-in.
    """

    memory_cost = 19 * 1024  # KiB
    time_cost = 2
    parallelism = 1

    def encode(self, password: str, salt: str) -> str:
        """Hash when it is its turn; raises Throttled if that takes too long."""
        with _hashing_turn():
            return super().encode(password, salt)

    def verify(self, password: str, encoded: str) -> bool:
        """Compare when it is its turn; raises Throttled if that takes too long."""
        with _hashing_turn():
            return super().verify(password, encoded)


@contextlib.contextmanager
def _hashing_turn() -> Iterator[None]:
    if not turns.acquire(timeout=PATIENCE):
        raise Throttled(wait=PATIENCE, detail="Too many sign-ins at once.")
    try:
        yield
    finally:
        turns.release()
