"""What the server does beside drawing pages: the entry script, health and event routes, sockets."""
