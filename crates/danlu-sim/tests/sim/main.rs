//! Whole clusters from the first submission to the last end: one story to read, and what holds for all of them.

mod properties;
mod story;
