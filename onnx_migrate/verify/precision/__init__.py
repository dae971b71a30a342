"""How far a model of a narrow floating-point type is from the model that it stands for."""
