"""Several processes of the product behind nginx, as `deploy/nginx.conf` has them, on one database."""

from __future__ import annotations

import contextlib
import datetime as dt
import ipaddress
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from django.db import connection

from tests.ops.service import free_port, wait_until
from tests.replicas.tools import ACTS

ROOT = Path(__file__).parent.parent.parent
NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")

FEW_DESCRIPTORS = 256  # what a replica starts with, as on some systems

# What is around `deploy/nginx.conf` on a machine of its own. One worker, since each takes turns by itself.
AROUND = """
daemon off;
worker_processes 1;
pid {folder}/pid;
error_log {folder}/error.log warn;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    add_header X-Replica $upstream_addr always;
    include {folder}/confirmhub.conf;
}}
"""


class Replica:
    """One process, at an address of its own, under the name that all of them share."""

    def __init__(self, folder: Path, url: str) -> None:
        self.address = f"127.0.0.1:{free_port()}"
        database = connection.settings_dict
        environment = os.environ | {
            "DATABASE_URL": f"postgresql://{database['USER']}@/{database['NAME']}?host={database['HOST']}",
            "PUBLIC_URL": url,
            "BEHIND_TLS_PROXY": "true",
            "TRUSTED_PROXIES": "127.0.0.1",
            "GUARDED_TOOLS": "tests.replicas.tools",
            ACTS: str(folder / "acts"),
        }
        self.log = folder / f"{self.address}.log"
        command = [sys.executable, "-m", "confirmhub.ops.web", self.address]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                ["sh", "-c", f'ulimit -S -n {FEW_DESCRIPTORS} && exec "$@"', "sh", *command],
                cwd=ROOT,
                env=environment,
                stdout=log,
                stderr=log,
            )

    def wait_until_ready(self) -> None:
        wait_until(lambda: self.process.poll() is not None or "startup complete" in self.log.read_text())
        assert self.process.poll() is None, self.log.read_text()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class Balanced:
    """The replicas, and the balancer in front of them."""

    def __init__(self, folder: Path, *, replicas: int) -> None:
        self.folder = folder
        port = free_port()
        self.url = f"https://localhost:{port}"
        (folder / "acts").touch()
        self.certificate, key = _certify(folder)
        self.replicas = [Replica(folder, self.url) for _ in range(replicas)]
        text = (ROOT / "deploy/nginx.conf").read_text()
        for number, replica in enumerate(self.replicas, start=1):
            text = _replaced(text, f"127.0.0.1:800{number};", f"{replica.address};")
        text = _replaced(text, "/etc/ssl/hub.example.com/fullchain.pem", str(self.certificate))
        text = _replaced(text, "/etc/ssl/hub.example.com/privkey.pem", str(key))
        text = _replaced(text, "listen 443 ssl", f"listen 127.0.0.1:{port} ssl")
        (folder / "confirmhub.conf").write_text(
            _replaced(text, "server_name hub.example.com", "server_name localhost")
        )
        (folder / "nginx.conf").write_text(AROUND.format(folder=folder))
        self.nginx = subprocess.Popen([str(NGINX), "-p", folder, "-c", folder / "nginx.conf", "-e", "stderr"])
        try:
            for replica in self.replicas:
                replica.wait_until_ready()
            wait_until(lambda: _listens(port) or self.nginx.poll() is not None)
            assert self.nginx.poll() is None
        except BaseException:
            self.stop()
            raise

    def acts(self) -> list[str]:
        """The confirmations that were acted on, once for each act."""
        return (self.folder / "acts").read_text().splitlines()

    def stop(self) -> None:
        for replica in self.replicas:
            replica.kill()
        self.nginx.terminate()
        self.nginx.wait()


def no_nginx() -> NoReturn:
    """Skip where nobody has installed nginx; fail where everything must have been."""
    reason = "nginx is not installed here (Debian: apt-get install -y --no-install-recommends nginx-light)"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@contextlib.contextmanager
def balanced(*, replicas: int) -> Iterator[Balanced]:
    """So many replicas behind nginx, for as long as the block runs."""
    if NGINX is None:
        no_nginx()
    with tempfile.TemporaryDirectory() as name:
        found = Balanced(Path(name), replicas=replicas)
        try:
            yield found
        finally:
            found.stop()


def _replaced(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, f"deploy/nginx.conf has {old!r} {text.count(old)} times"
    return text.replace(old, new)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _certify(folder: Path) -> tuple[Path, Path]:
    """A certificate for this machine that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(minutes=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return folder / "certificate.pem", folder / "key.pem"
