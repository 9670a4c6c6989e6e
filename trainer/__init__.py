"""What runs on the GPU: a resolved config in; checkpoints, events and a policy out; files only, no HTTP."""
