//! Typed HTTP client of the Danlu API
