"""Agents as ONNX graphs with a runner that needs neither torch nor airloc."""
