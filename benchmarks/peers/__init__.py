"""What ours is measured against."""
