//! The launcher: one process around each worker
