"""CertifiedElimination: the policy, its ladder of batches and cuts, the search for it, and its proof's functions."""
