"""A small OpenID Connect provider for tests: the standard library, one client, one person at a time.

Not one from a package index: those want a database, a browser to click in and a network to install from. What a provider
must do to be one is done: discovery, PKCE, one-time codes, the client's secret, redirect addresses by the letter, and ID
tokens signed with RS256. `POST /person` says who is at the keyboard, and how the provider misbehaves.
"""

import base64
import hashlib
import json
import secrets
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

# A key for tests, known to everybody.
N = int(
    "8e8b217a253770ed980d6f11a35e58e6618b4d8ae40b46c11a9d41a964155478c377d8772d9a1ff381f4080cbbe24ab1861e"
    "b4f25f34e13d1c72c7ac9180cf981991ae9597d7f58e51bc5c15a324b1608a607da2f35644c1da1145611567dee1ebcca22b"
    "dfa1a5f99b82f1689a6ce31e5a1d24887572263ef53ccb4c2d48613ef71acf48ecf0642fcac0e91daaae67b267ca22d62380"
    "8028c6564e8b8ae4eeddfd699564db37a4ac655447b34f0ca5895d7279a13b2974f36f9789a988a34a4975370de092fa7dff"
    "e84c30830a3d7cac15505f950abad2c76eb99dde3cd2324cd0a8bdf943db47bbc48932b05f9f47114711050965ff3c7573e1"
    "3b3ad579e4b7",
    16,
)
D = int(
    "119d42c147c90e94e5a5bf5464263c01180bb144d90245b78614e9b0c773d550e902adc6a86573ce510039606d753cbaac32"
    "ae34872c4f2b109164784030b5367bee632f0c28fd289d9413a2feda816ac71ebe57bd0f2b86f2ee106f3b486f23e6d20e36"
    "32b7d47d4048d19116081f96b81702d534022b94bb144ca0f8b58982a19f96085de2c1348a11f41712eb599b6c78e732edaa"
    "be8cb13513f9b09721fce28a8b13136293b5ad5d6cfbd1fc49bdf97f35a482ef3bd0e292dd3a6d67f20cdbaba7c993590fc7"
    "7d40133df056cdc93cd9b80fb42372f8a2f7b34ee6faa882f26484b219a0aa46c94c978e27b0a8df50a020333aa3f60cf9f9"
    "5dec7481c79d",
    16,
)
SHA256_PREFIX = bytes.fromhex("3031300d060960864801650304020105000420")

CLIENT, SECRET = "danlu", "a shared secret"
person = {}
codes = {}


def text(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def signed(claims):
    head = text(json.dumps({"alg": "RS256", "kid": "one"}).encode())
    message = f"{head}.{text(json.dumps(claims).encode())}"
    digest = SHA256_PREFIX + hashlib.sha256(message.encode()).digest()
    padded = b"\0\1" + b"\xff" * (256 - 3 - len(digest)) + b"\0" + digest
    signature = pow(int.from_bytes(padded, "big"), D, N).to_bytes(256, "big")
    return f"{message}.{text(signature)}"


class Provider(BaseHTTPRequestHandler):
    def issuer(self):
        return f"http://127.0.0.1:{self.server.server_port}"

    def log_message(self, *_):
        pass

    def answer(self, status, body, **headers):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        address = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(address.query).items()}
        if address.path == "/.well-known/openid-configuration":
            issuer = self.issuer()
            return self.answer(200, {
                "issuer": issuer,
                "authorization_endpoint": f"{issuer}/authorize",
                "token_endpoint": f"{issuer}/token",
                "jwks_uri": f"{issuer}/keys",
            })
        if address.path == "/keys":
            key = {"kty": "RSA", "kid": "one", "n": text(N.to_bytes(256, "big")), "e": "AQAB"}
            return self.answer(200, {"keys": [key]})
        if address.path == "/authorize":
            if query["client_id"] != CLIENT or query["response_type"] != "code":
                return self.answer(400, {"error": "unauthorized_client"})
            code = secrets.token_urlsafe()
            codes[code] = (query, dict(person))
            back = urlencode({"code": code, "state": query["state"]})
            return self.answer(302, {}, Location=f"{query['redirect_uri']}?{back}")
        return self.answer(404, {})

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if self.path == "/person":
            person.clear()
            person.update(json.loads(body))
            return self.answer(200, {})
        form = {name: values[0] for name, values in parse_qs(body).items()}
        query, who = codes.pop(form.get("code"), (None, None))
        challenge = text(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        if (
            query is None
            or form.get("client_secret") != SECRET
            or form.get("redirect_uri") != query["redirect_uri"]
            or query.get("code_challenge_method") != "S256"
            or challenge != query.get("code_challenge")
        ):
            return self.answer(400, {"error": "invalid_grant"})
        claims = {"iss": self.issuer(), "aud": CLIENT, "exp": int(time.time()) + 300, "nonce": query["nonce"]}
        claims.update(who)
        return self.answer(200, {"access_token": "none", "token_type": "Bearer", "id_token": signed(claims)})


server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
print(server.server_port, flush=True)
# Ends with the test that started it, however that ends.
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
