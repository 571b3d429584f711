"""What the parts of a configuration can cost at worst, in bytes of memory and disk."""
