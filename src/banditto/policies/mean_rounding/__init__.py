"""MeanRounding, the paper's Algorithm 1, beside its constants."""
