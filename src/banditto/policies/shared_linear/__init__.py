"""What the linear policies share: actions with features, contests by design, rounded estimates."""
