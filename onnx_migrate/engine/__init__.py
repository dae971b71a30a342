"""How a model is moved: the registry of adapters, the lift, passes and the pipeline they form."""
