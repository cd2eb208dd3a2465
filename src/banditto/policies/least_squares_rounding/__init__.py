"""LeastSquaresRounding, the paper's Algorithm 4: its batches, their accuracies, what each does with an active set."""
