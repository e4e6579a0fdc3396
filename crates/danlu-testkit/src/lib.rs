//! A real server on a temporary folder, builders, fake programs
