//! Content-addressed code snapshots: packing, storing, unpacking
