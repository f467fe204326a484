"""Messages to people and their delivery. Never decides."""
