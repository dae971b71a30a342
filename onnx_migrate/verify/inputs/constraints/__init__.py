"""Which values a model accepts at its inputs, derived from its nodes."""
