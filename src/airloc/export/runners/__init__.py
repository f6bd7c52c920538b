"""The files that `airloc export` writes beside the graphs: each runs one kind of agent with NumPy and onnxruntime."""
