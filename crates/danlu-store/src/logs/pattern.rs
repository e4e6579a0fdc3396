//! What to search for.

use memchr::memmem::Finder;
use regex::bytes::{Regex, RegexBuilder};

use super::LogError;

/// A text, or a regular expression; upper and lower case differ.
#[derive(Debug, Clone)]
pub struct Pattern(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Text(Box<Finder<'static>>),
    Regex(Regex),
}

/// An expression from a client may not cost more memory than this once compiled; its time is linear in any case.
const LARGEST_REGEX_BYTES: usize = 1 << 20;

impl Pattern {
    pub fn text(text: &str) -> Self {
        Pattern(Kind::Text(Box::new(Finder::new(text).into_owned())))
    }

    pub fn regex(expression: &str) -> Result<Self, LogError> {
        let regex = RegexBuilder::new(expression)
            .size_limit(LARGEST_REGEX_BYTES)
            .dfa_size_limit(LARGEST_REGEX_BYTES)
            .build();
        match regex {
            Ok(regex) => Ok(Pattern(Kind::Regex(regex))),
            Err(error) => Err(LogError::BadPattern { source: Box::new(error) }),
        }
    }

    pub fn is_match(&self, text: &[u8]) -> bool {
        match &self.0 {
            Kind::Text(finder) => finder.find(text).is_some(),
            Kind::Regex(regex) => regex.is_match(text),
        }
    }
}
