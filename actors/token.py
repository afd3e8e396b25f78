"""The token with which Ray tells its user from others: a file in the home folder, which others must not read."""

import os
import secrets
from contextlib import suppress
from pathlib import Path


def keep_token_private(*, make: bool) -> None:
    """Lets only its owner read Ray's token, and makes one if there is none, unless Ray is told to use none or another.

    Ray would make a file that everybody can read who may enter the home folder, and whoever knows the token can run
    code as its owner. Where the home folder cannot be written to, Ray says so. make: whether Ray would make one.
    """
    token = Path.home() / ".ray" / "auth_token"
    with suppress(OSError):
        if token.stat().st_mode & 0o077:
            token.chmod(0o600)
    others = {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & os.environ.keys()
    if not make or others or os.environ.get("RAY_AUTH_MODE", "token").lower() != "token":
        return
    hidden = token.with_name(f".auth_token.{os.getpid()}")
    with suppress(OSError):
        token.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            with open(os.open(hidden, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
                file.write(secrets.token_hex(32))
            os.link(hidden, token)  # fails if there is one, and shows it to others only once it is whole
        finally:
            hidden.unlink(missing_ok=True)
