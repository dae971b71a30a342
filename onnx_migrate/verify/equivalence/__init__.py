"""Whether a result computes what the original computes, at the sizes of the original."""
