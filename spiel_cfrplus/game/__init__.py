"""From pyspiel games to arrays."""
