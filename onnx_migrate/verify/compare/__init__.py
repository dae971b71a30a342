"""How two arrays are compared: what differs, how much of that is rounding, and whether an output can show a difference at all."""
