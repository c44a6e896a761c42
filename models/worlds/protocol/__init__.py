"""What the worlds of the protocol are built from: the real cores, what is watched of them, and what surrounds them."""
