"""Commands of `canard` that need Hydra: review of conf/ and of what it composes to."""
