"""Tables and pages that people read."""
