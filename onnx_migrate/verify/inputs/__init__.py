"""Where the inputs of a verification come from: the user's files, or random values in the ranges that the model can take."""
