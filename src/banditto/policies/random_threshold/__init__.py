"""RandomThreshold, the paper's Algorithm 2, beside its constants."""
