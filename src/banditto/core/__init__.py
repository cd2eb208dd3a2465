"""The words that all is written in: protocols, digests, rewards, schedules, trajectories, errors, exact numbers."""
