"""Sessions: what is decided (pure), and the loop that decides it, one for each session."""
