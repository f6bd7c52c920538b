"""The paper again: the graph of experiments, run here or on a cluster, and the report at its end."""
