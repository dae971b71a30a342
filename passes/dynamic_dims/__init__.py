"""Makes dims of the inputs symbolic, and declares the resulting dims of the outputs."""
