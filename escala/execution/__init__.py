"""How one seat runs a step: free functions, applied in one visible order by `strategies.learner`."""
