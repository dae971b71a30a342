"""What a command prints, shows and writes beside the model."""
