"""The output of commands: text, and files other than the model."""
