"""One batch and one shared cut, for a gap that the experimenter names."""
