"""Facts about the values in a model: types, shapes, constants."""
