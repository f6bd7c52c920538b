"""Metrics, intervals, floors and controls."""
