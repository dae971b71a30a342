"""What a command prints, and writes besides the model."""
