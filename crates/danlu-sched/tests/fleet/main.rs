//! Placement from outside: rules by example, and what must hold whatever happens.

mod fixture;
mod properties;
mod rules;
