"""From a submitted RunConfig to a run with its tasks: all of it checked, then all of it stored."""
