"""Runs the steps of operators on small samples, and writes down what they do."""
