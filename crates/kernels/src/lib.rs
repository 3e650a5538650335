//! Numbers in slices, fast: dot products, matrix products, attention, element types.
