"""The steps of operators between their versions, up and down: registries, and the visitors that apply them."""
