"""A mail server for tests: one line of JSON for its port, then one for each mail."""
import asyncio
import json
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult

mode, cert, key = sys.argv[1:]
tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
tls.load_cert_chain(cert, key)


class Handler:
    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("nobody"):
            return "550 5.1.1 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        text = envelope.content.decode("utf-8", "replace")
        print(json.dumps({"to": envelope.rcpt_tos, "from": envelope.mail_from, "text": text, "tls": session.ssl is not None}), flush=True)
        return "250 OK"


def login(server, session, envelope, mechanism, data):
    good = data.login == b"ada" and data.password == b"hunter2"
    return AuthResult(success=good, handled=False)


def session():
    if mode == "implicit":
        return SMTP(Handler(), authenticator=login, auth_required=True, auth_require_tls=False)
    if mode == "none":
        return SMTP(Handler())
    return SMTP(Handler(), tls_context=tls, require_starttls=True, authenticator=login, auth_required=True)


async def main():
    loop = asyncio.get_running_loop()
    server = await loop.create_server(session, "127.0.0.1", 0, ssl=tls if mode == "implicit" else None)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    await loop.run_in_executor(None, sys.stdin.read)  # until the test ends
    server.close()


asyncio.run(main())
