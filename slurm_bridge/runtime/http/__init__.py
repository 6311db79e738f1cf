"""HTTP for all adapters: kept connections, bounded answers with one deadline, one repetition after refused credentials.

    adapter ── Client ── KeptConnections ── Exchange ── server
                      └─ tests.direct_pool ─ pocket server

Belongs here: everything that an adapter needs of HTTP, and the only imports of urllib3, which makes the connections.
Does not belong here: addresses, credentials and what an answer means; the adapters say these.

An error tells whether a request may have been acted on:

    Unavailable        it was not sent
    BadConfiguration   it was not sent, and waiting will not help: certificates, keys, a header that cannot be sent
    Unanswered         it was sent; the answer is missing or late
    BadAnswer          the answer has begun, and broke off or is too large
"""
