//! An ordered concurrent map of byte keys to 64-bit values.
