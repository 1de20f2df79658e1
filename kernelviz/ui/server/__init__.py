"""The server besides the pages: the entry script, health and event routes, sockets."""
