"""Cases for clients: a scripted server, and the client under test behind lines of JSON (SPEC 4, 5).

`conversation` is the session that the server has, version by version; `scripted` speaks for it over real
sockets; `driver` is the program under test; `scene` has all three, and holds what the client shows against
the version that it says it shows. `cases` has a file a chapter.
"""
