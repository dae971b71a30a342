"""One file for each kind of operator whose attributes or constants can hold a frozen dim."""
