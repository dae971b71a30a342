"""A Resize on its way down: what is known of it, where it samples, and how that is written without a Resize."""
