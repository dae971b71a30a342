"""What becomes of each operator on the way to each version; one file per operator family."""
