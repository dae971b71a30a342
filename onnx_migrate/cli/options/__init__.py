"""What several commands are asked: options, the configuration file, where work runs."""
