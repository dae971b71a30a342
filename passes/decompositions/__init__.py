"""How operators that a target lacks are written with others of the same opset; one file per operator family."""
