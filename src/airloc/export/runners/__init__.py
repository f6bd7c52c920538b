"""Sources of the runners. `airloc export` writes each as one file, together with the NumPy modules that it imports."""
