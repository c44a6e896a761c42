"""How each party behaves: the machines, composed into cores."""
