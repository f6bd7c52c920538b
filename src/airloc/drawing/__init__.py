"""Pictures, animations, charts and HTML pages from arrays and plain values.

`charts` and `figure` are the only modules that need Matplotlib.
"""
