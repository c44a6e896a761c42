"""The real ports: sockets and files."""
