"""One part of each kind for raysim, as a package of somebody else brings them."""
