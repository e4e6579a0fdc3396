//! The life of a job: its table, its rules as transcripts, what holds for every life; and the environment of its ranks.

mod builders;
mod environment;
mod life_table;
mod properties;
mod rules;
