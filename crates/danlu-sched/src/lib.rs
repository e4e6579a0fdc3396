//! What should happen: a snapshot in, a plan and an explanation out
