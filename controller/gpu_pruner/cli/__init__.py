"""Arguments to settings to one call."""
