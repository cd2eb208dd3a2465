"""LinearThreshold, the paper's Algorithm 3, beside its constants; and NetThreshold, which plays it on a net."""
