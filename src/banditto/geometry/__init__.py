"""What linear policies stand on: action sets, G-optimal designs, least squares, active sets."""
