"""Linear problems: least squares by design, rounded estimates, and what the linear policies share."""
