"""A report as one page that opens anywhere: nothing of it is loaded, and no name in it is obeyed."""
