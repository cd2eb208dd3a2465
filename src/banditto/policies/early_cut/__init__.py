"""EarlyCut: the same winner as early as the data allow."""
