"""Who holds which samples: partitions, sizes, skew, noise, and what the server has, all have, or nobody trains on."""
