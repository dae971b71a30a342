"""Whether a model with dims made dynamic runs at other sizes, and treats each item of a batch as the original did."""
