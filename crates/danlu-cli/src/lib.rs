//! Commands and their output
