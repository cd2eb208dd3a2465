"""Where rewards come from: environments, logs, and how flags, files and arguments name them."""
