"""The downward steps of all operators, one module for each operator family, named as in `adapters`."""
