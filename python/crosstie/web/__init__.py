"""Web programs beside a router: WSGI applications and Twisted resources, a process for each.

The router is the web server. It passes requests on, over HTTP and a Unix socket that only this user
can open, and says in headers of its own how they came.
"""
