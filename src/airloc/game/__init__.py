"""The human game: the server that holds the episodes, the page, the study with people, agents to watch."""
