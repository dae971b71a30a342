"""Measures the distance between a model of a narrow floating-point type and the model that it stands for."""
