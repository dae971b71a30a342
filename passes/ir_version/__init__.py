"""The pass that gives a model an IR version, and the parts of the model that it rewrites for an older version."""
