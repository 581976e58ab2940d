"""Records in, summaries and a verdict out. Needs no torch and no device: a report opens anywhere."""
