"""Coins that two executions share, noise that they do not, and the samplers that turn words into rewards."""
