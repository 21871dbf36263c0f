"""Password hashing: as costly as OWASP advises, two at a time."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any, Final

from django.contrib.auth.hashers import Argon2PasswordHasher
from knox.models import AuthToken
from rest_framework.exceptions import Throttled

if TYPE_CHECKING:
    from collections.abc import Iterator

AT_A_TIME: Final = 2
PATIENCE: Final = 2.0  # seconds that a further one waits for its turn
_turns = threading.BoundedSemaphore(AT_A_TIME)


class Argon2(Argon2PasswordHasher):
    """argon2id with 19 MiB, two passes and one lane; two at a time in each process.

    Each hash takes its memory and a processor for some 30 ms: sixty at once would stop all else.
    Source: OWASP's password storage cheat sheet. Hashes of other costs are renewed at sign-in.
    """

    memory_cost = 19 * 1024  # KiB
    time_cost = 2
    parallelism = 1

    def encode(self, password: str, salt: str) -> str:
        """Hash once there is a turn; raises Throttled where none comes."""
        with _turn():
            return super().encode(password, salt)

    def verify(self, password: str, encoded: str) -> bool:
        """Compare once there is a turn; raises Throttled where none comes."""
        with _turn():
            return super().verify(password, encoded)


@contextlib.contextmanager
def _turn() -> Iterator[None]:
    if not _turns.acquire(timeout=PATIENCE):
        raise Throttled(wait=PATIENCE, detail="Too many sign-ins at once.")
    try:
        yield
    finally:
        _turns.release()


class EndTokens:
    """Ends a person's tokens when the password changes, wherever it is changed.

    Django informs its validators of each password that was set and stored; it ends the other
    sessions itself. A hash that is renewed at sign-in is no change.
    """

    def validate(self, password: str, user: Any = None) -> None:
        """Every password is good enough for this one."""

    def password_changed(self, _password: str, user: Any = None) -> None:
        """Take all tokens of this person back."""
        if user is not None and user.pk:
            AuthToken.objects.filter(user=user).delete()

    def get_help_text(self) -> str:
        """What the form says beside the field."""
        return "A new password ends your other sessions and your tokens."
