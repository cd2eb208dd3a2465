"""The words that everything is written in: protocols, rewards, schedules, trajectories, errors, exact arithmetic."""
