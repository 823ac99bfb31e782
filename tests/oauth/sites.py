"""Documents like those that well-known hosts publish, on an HTTPS server with a CA of its own."""

from __future__ import annotations

import contextlib
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from confirmhub.oauth import fetcher

REAL_FETCH = fetcher.fetch


@dataclass
class Web:
    """An HTTPS server for `*.test`. `pages` maps a path to what it answers."""

    port: int
    trust: ssl.SSLContext
    pages: dict[str, Callable[[BaseHTTPRequestHandler], None]]
    asked: list[tuple[str, str]] = field(default_factory=list)  # Host header and path

    def url(self, path: str, *, host: str = "claude.test") -> str:
        return f"https://{host}:{self.port}{path}"

    def serve_json(self, path: str, document: object, **headers: str) -> None:
        def answer(handler: BaseHTTPRequestHandler) -> None:
            send(handler, json.dumps(document).encode(), **headers)

        self.pages[path] = answer

    def fetch(self, client_id: str, **changes: Any) -> fetcher.Document:
        """The real fetcher, told to find every name here and to trust our CA."""
        how: dict[str, Any] = {
            "resolve": lambda *_: ["127.0.0.1"],
            "admits": lambda _: True,
            "trust": self.trust,
            **changes,
        }
        return REAL_FETCH(client_id, **how)


def send(handler: BaseHTTPRequestHandler, body: bytes, *, status: int = 200, **headers: str) -> None:
    handler.send_response(status)
    sent = {"Content-Type": "application/json", "Content-Length": str(len(body))}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    for name, value in sent.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)


def authority(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's TLS for `*.test`, and a client's that trusts nothing else."""
    now = datetime.now(UTC)

    def certificate(name: str, issuer: str, key: Any, signer: Any, extension: Any) -> x509.Certificate:
        return (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(extension, critical=True)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
            )
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(
                x509.KeyUsage(
                    digital_signature=True,
                    content_commitment=False,
                    key_encipherment=False,
                    data_encipherment=False,
                    key_agreement=False,
                    key_cert_sign=key is signer,
                    crl_sign=False,
                    encipher_only=False,
                    decipher_only=False,
                ),
                critical=True,
            )
            .sign(signer, hashes.SHA256())
        )

    root_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    root = certificate(
        "test root", "test root", root_key, root_key, x509.BasicConstraints(ca=True, path_length=None)
    )
    leaf = certificate(
        "*.test", "test root", key, root_key, x509.SubjectAlternativeName([x509.DNSName("claude.test")])
    )
    (folder / "root.pem").write_bytes(root.public_bytes(serialization.Encoding.PEM))
    (folder / "leaf.pem").write_bytes(
        leaf.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "leaf.pem")
    return server, ssl.create_default_context(cafile=str(folder / "root.pem"))


@contextlib.contextmanager
def open_site(server_side: ssl.SSLContext, client_side: ssl.SSLContext) -> Iterator[Web]:
    """Serve it in a thread. Both sides are `authority`'s."""
    pages: dict[str, Callable[[BaseHTTPRequestHandler], None]] = {}
    site = Web(port=0, trust=client_side, pages=pages)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.asked.append((self.headers.get("Host", ""), self.path))
            with contextlib.suppress(OSError):  # who asked may have given up
                (pages.get(self.path) or pages[urlsplit(self.path).path])(self)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
            pass

    with listening(Handler, server_side) as site.port:
        yield site


@contextlib.contextmanager
def listening(handler: type[BaseHTTPRequestHandler], server_side: ssl.SSLContext | None) -> Iterator[int]:
    """Serve on a free port of this machine, which it yields; with TLS where that side of it is given."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def get_request(self) -> tuple[Any, Any]:
            connection, address = super().get_request()
            if server_side is None:
                return connection, address
            # The handshake happens in the handler's thread, so that a refused one harms nobody.
            wrapped = server_side.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
            return wrapped, address

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass

    server = Server(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


def published(web: Web, path: str, **fields: object) -> str:
    """Publish a document like that of a real host; returns its client id."""
    client_id = web.url(path)
    web.serve_json(path, {"client_id": client_id, **fields})
    return client_id


CLAUDE = {
    "client_name": "Claude",
    "client_uri": "https://claude.ai",
    "redirect_uris": ["https://claude.ai/api/mcp/auth_callback"],
    "grant_types": [
        "authorization_code",
        "refresh_token",
        "urn:ietf:params:oauth:grant-type:jwt-bearer",
    ],
    "response_types": ["code"],
    "token_endpoint_auth_method": "none",
}
VS_CODE = {
    "client_name": "Visual Studio Code",
    "redirect_uris": ["http://127.0.0.1:33418/", "https://vscode.dev/redirect"],
    "grant_types": [
        "authorization_code",
        "refresh_token",
        "urn:ietf:params:oauth:grant-type:device_code",
    ],
    "response_types": ["code"],
    "token_endpoint_auth_method": "none",
    "application_type": "native",
}
CHAT_GPT = {
    "client_name": "ChatGPT",
    "redirect_uris": ["https://chatgpt.com/connector_platform_oauth_redirect"],
    "grant_types": ["authorization_code", "refresh_token"],
    "token_endpoint_auth_method": "private_key_jwt",
    "token_endpoint_auth_methods_supported": ["none", "private_key_jwt"],
    "jwks_uri": "https://chatgpt.com/jwks.json",
}
CLAUDE_CODE = {
    "client_name": "Claude Code",
    "redirect_uris": ["http://localhost/callback", "http://127.0.0.1/callback"],
    "grant_types": ["authorization_code", "refresh_token"],
    "response_types": ["code"],
    "token_endpoint_auth_method": "none",
}
HOSTS = {"claude": CLAUDE, "vscode": VS_CODE, "chatgpt": CHAT_GPT, "claude-code": CLAUDE_CODE}
