//! The life of a cluster under virtual time, with the scheduler that runs the real one
