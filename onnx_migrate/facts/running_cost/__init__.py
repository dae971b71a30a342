"""What a run of a model takes in time and memory, estimated before anything runs."""
