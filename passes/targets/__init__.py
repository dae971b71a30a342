"""The passes that make a model fit the runtimes it is for."""
