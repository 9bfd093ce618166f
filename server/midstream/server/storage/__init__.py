"""What outlives the process: one SQLite file, its schema, and what is read and written there (SPEC 9)."""
