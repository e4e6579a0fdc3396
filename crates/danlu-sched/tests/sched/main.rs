//! The scheduler's tests: its rules as fixtures, what holds for every plan, and a slow planner to compare it with.

mod fixture;
mod properties;
mod reference;
mod rules;
