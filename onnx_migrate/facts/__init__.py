"""What is known of the values in a model: types, shapes, constants."""
