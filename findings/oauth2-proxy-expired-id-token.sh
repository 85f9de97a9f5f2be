#!/bin/sh
# github.com/oauth2-proxy/oauth2-proxy v7.15.6 (Go), with a small OpenID Connect provider of Python's standard library.
# Behaviour: with --pass-authorization-header the ID token of the sign-in is passed on for as long as the cookie lasts (168 h
# by default), also once it has expired: sessions are looked at only where --cookie-refresh is set, which is 0 by default.
# Output seen: signed in: passed, good for 3 s; 5 s later: 200, passed, expired
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
GOBIN="$folder" GOFLAGS=-modcacherw go install github.com/oauth2-proxy/oauth2-proxy/v7@v7.15.6 > /dev/null 2>&1
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check cryptography==46.0.3
cat > finding.py <<'PY'
import base64
import http.cookiejar
import json
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

KEY = rsa.generate_private_key(65537, 2048)
nonces = {}
passed = []


def b64(value):
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def token(nonce):
    now = int(time.time())
    claims = {"iss": issuer, "sub": "ann", "aud": "client", "iat": now, "exp": now + 3, "email": "ann@example.com"}
    claims |= {"email_verified": True, "groups": [], "nonce": nonce}
    text = ".".join(b64(json.dumps(one).encode()) for one in ({"alg": "RS256", "kid": "k"}, claims))
    return f"{text}.{b64(KEY.sign(text.encode(), padding.PKCS1v15(), SHA256()))}"


class Provider(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def answer(self, body, code=200, **headers):
        data = json.dumps(body).encode()
        self.send_response(code)
        for name, value in {"Content-Type": "application/json", "Content-Length": len(data), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        if url.path == "/.well-known/openid-configuration":
            said = {f"{name}_endpoint": f"{issuer}/{name}" for name in ("authorization", "token")}
            said |= {"issuer": issuer, "jwks_uri": f"{issuer}/keys", "response_types_supported": ["code"]}
            self.answer({**said, "subject_types_supported": ["public"], "id_token_signing_alg_values_supported": ["RS256"]})
        elif url.path == "/keys":
            n = KEY.public_key().public_numbers().n
            self.answer({"keys": [{"kty": "RSA", "alg": "RS256", "kid": "k", "e": "AQAB", "n": b64(n.to_bytes(256, "big"))}]})
        elif url.path == "/authorization":
            nonces["code"] = query.get("nonce", "")
            back = query["redirect_uri"] + "?" + urllib.parse.urlencode({"code": "code", "state": query["state"]})
            self.answer({}, 302, Location=back)
        else:  # the upstream: what is passed on to it
            passed.append(self.headers.get("Authorization", ""))
            self.answer({})

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer({"access_token": "a", "token_type": "Bearer", "expires_in": 3, "id_token": token(nonces["code"])})


def claims():
    body = passed[-1].removeprefix("Bearer ").split(".")[1]
    return json.loads(base64.urlsafe_b64decode(body + "=="))


server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
threading.Thread(target=server.serve_forever, daemon=True).start()
issuer = f"http://127.0.0.1:{server.server_port}"
address = sys.argv[1]
flags = ["--provider=oidc", f"--oidc-issuer-url={issuer}", "--client-id=client", "--client-secret=secret"]
flags += ["--cookie-secret=0123456789abcdef", "--cookie-secure=false", "--email-domain=*", f"--upstream={issuer}"]
flags += [f"--redirect-url=http://{address}/oauth2/callback", f"--http-address={address}", "--skip-provider-button"]
proxy = subprocess.Popen(["./oauth2-proxy", *flags, "--pass-authorization-header"], stderr=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL)
try:
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
    for _ in range(100):
        try:
            browser.open(f"http://{address}/ping")
            break
        except urllib.error.URLError:
            time.sleep(0.1)
    browser.open(f"http://{address}/page")
    first = claims()
    time.sleep(5)
    code = browser.open(f"http://{address}/page").status
    later = claims()
    expired = "expired" if later["exp"] < time.time() else "renewed"
    print(f"signed in: passed, good for {first['exp'] - first['iat']} s; 5 s later: {code}, passed, {expired}")
finally:
    proxy.kill()
PY
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
seen=$(own/bin/python finding.py "127.0.0.1:$port")
wanted='signed in: passed, good for 3 s; 5 s later: 200, passed, expired'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
