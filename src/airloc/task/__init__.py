"""The task: rules, episodes, suites and the environments over them."""
