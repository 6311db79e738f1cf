"""The folder of the Slurm servers: configuration, keys, tokens and the socket, in `.cluster/slurm`.

Tokens are signed here rather than asked from slurmctld, so that they exist before it runs, and so that a test can
have one of any user and any age.
"""

import base64
import hashlib
import hmac
import json
import pathlib
import secrets
import shutil
import time

from localcluster import engine, secret, slurm_conf
from localcluster.config import PROJECT, Config

COMPOSE_FILE = PROJECT / "hack" / "cluster" / "slurm" / "compose.yaml"

#: Only SlurmUser or root may choose a job id or write an admin_comment: the operator's token is SlurmUser's.
OPERATOR = "slurm"
USER = "alice"
LIFESPAN = 30 * 24 * 3600


class SlurmFiles:
    """The part that writes the folder; it runs when the folder says what the configuration says."""

    name = "slurm-files"

    def state(self, config: Config) -> str | None:
        if not _has_secrets(config) or _stored(config) != _wanted(config):
            return None
        fresh = all(_is_fresh(file) for file in token_files(config).values())
        return f"{config.nodes} nodes, accounting {'on' if config.accounting else 'off'}" if fresh else None

    def start(self, config: Config) -> None:
        for folder in (conf(config), run_folder(config), logs(config)):
            folder.mkdir(parents=True, exist_ok=True)
        # The servers run under users of the container, which are not the owner of these folders.
        run_folder(config).chmod(0o777)
        for name in SECRETS:
            if not _secret(config, name).exists():
                secret.write(_secret(config, name), secrets.token_hex(32))
        _forget_old(config)
        for name, text in _wanted(config).items():
            secret.write(conf(config) / name, text)  # some hold the database password
        for user, file in token_files(config).items():
            secret.write(file, token(config, user) + "\n")

    def stop(self, config: Config) -> None:
        if engine.answers(config):
            engine.docker(config, "volume", "rm", "--force", *(f"{prefix(config)}_{volume}" for volume in VOLUMES))
        for tree in (folder(config), logs(config)):
            shutil.rmtree(tree, ignore_errors=not tree.exists())


#: Made by compose, removed with the folder: a new cluster has new keys and must not find old jobs.
VOLUMES = ("state", "database")

#: Made once per cluster: the trust between the servers, the signature of the tokens, the database password.
SECRETS = ("slurm.key", "jwt_hs256.key", "database.password")


def prefix(config: Config) -> str:
    """Of all containers and volumes: two clusters in different folders may share one engine."""
    return f"slurm-bridge-{hashlib.sha256(str(config.directory).encode()).hexdigest()[:8]}"


def folder(config: Config) -> pathlib.Path:
    """Everything that the cluster writes about Slurm, except logs."""
    return config.directory / "slurm"


def conf(config: Config) -> pathlib.Path:
    """What the containers read."""
    return folder(config) / "conf"


def run_folder(config: Config) -> pathlib.Path:
    """Where slurmrestd puts its socket."""
    return folder(config) / "run"


def logs(config: Config) -> pathlib.Path:
    """Where the servers write."""
    return config.logs / "slurm"


def socket_file(config: Config) -> pathlib.Path:
    """The unix socket that slurmrestd also serves."""
    return run_folder(config) / "slurmrestd.sock"


def token_files(config: Config) -> dict[str, pathlib.Path]:
    """User -> the file with a token of theirs."""
    return {OPERATOR: folder(config) / "token", USER: folder(config) / f"token-{USER}"}


def token(config: Config, user: str, *, lifespan: float = LIFESPAN) -> str:
    """A token that slurmrestd accepts for a user; a negative lifespan makes an expired one."""
    key = _secret(config, "jwt_hs256.key").read_bytes()
    return signed(key, {"iat": int(time.time()), "exp": int(time.time() + lifespan), "sun": user})


def signed(key: bytes, claims: dict[str, object]) -> str:
    """A JSON web token, HS256."""
    head = ".".join(_base64(json.dumps(part).encode()) for part in ({"alg": "HS256", "typ": "JWT"}, claims))
    return f"{head}.{_base64(hmac.digest(key, head.encode(), 'sha256'))}"


def fingerprint(config: Config) -> str:
    """Changes whenever a running server would have to be started anew to follow its files; "" without files."""
    if not _has_secrets(config):
        return ""
    keys = [_secret(config, name).read_text() for name in SECRETS]
    facts = [keys, COMPOSE_FILE.read_text(), _wanted(config)]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def _wanted(config: Config) -> dict[str, str]:
    files = slurm_conf.files(config)
    if config.accounting:
        password = _secret(config, "database.password").read_text()
        files["slurmdbd.conf"] = slurm_conf.slurmdbd_conf(config, password)
        files["grants.sql"] = slurm_conf.grants_sql(password)
    return files


def _stored(config: Config) -> dict[str, str]:
    files = (file for file in conf(config).iterdir() if file.name not in SECRETS)
    return {file.name: file.read_text() for file in files}


def _forget_old(config: Config) -> None:
    """A file of another configuration (slurmdbd.conf) would still be read."""
    for name in _stored(config).keys() - _wanted(config).keys():
        (conf(config) / name).unlink()


def _secret(config: Config, name: str) -> pathlib.Path:
    return conf(config) / name


def _has_secrets(config: Config) -> bool:
    return all(_secret(config, name).exists() for name in SECRETS)


def _is_fresh(file: pathlib.Path) -> bool:
    """A token with more than half its life before it."""
    if not file.exists():
        return False
    claims = json.loads(base64.urlsafe_b64decode(file.read_text().split(".")[1] + "=="))
    return bool(claims["exp"] > time.time() + LIFESPAN / 2)


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
