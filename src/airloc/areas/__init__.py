"""Where search areas come from."""
