//! What is wrong with a rank table as a text, before it is read as a table: things that JSON's readers pass over or complain of
//! vaguely.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

/// Some editors put it before the first character.
pub(super) const BYTE_ORDER_MARK: char = '\u{feff}';

/// The line of the first comment, counted from 1. The vendor's own examples have some; JSON has none.
pub(super) fn comment_line(text: &str) -> Option<usize> {
    let (mut line, mut in_text, mut escaped) = (1, false, false);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\n' => line += 1,
            _ if escaped => escaped = false,
            '\\' if in_text => escaped = true,
            '"' => in_text = !in_text,
            '#' if !in_text => return Some(line),
            '/' if !in_text && characters.peek().is_some_and(|next| matches!(next, '/' | '*')) => {
                return Some(line);
            }
            _ => {}
        }
    }
    None
}

/// The paths of keys that stand twice in one object; the readers of JSON keep the last.
pub(super) fn doubled_keys(text: &str) -> Vec<String> {
    let mut doubled = Vec::new();
    let mut reader = serde_json::Deserializer::from_str(text);
    // What is no JSON is told elsewhere.
    let _ = Walk { path: String::new(), doubled: &mut doubled }.deserialize(&mut reader);
    doubled
}

struct Walk<'a> {
    path: String,
    doubled: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut known = BTreeSet::new();
        while let Some(key) = map.next_key::<String>()? {
            let path = if self.path.is_empty() { key.clone() } else { format!("{}.{key}", self.path) };
            if !known.insert(key) {
                self.doubled.push(path.clone());
            }
            map.next_value_seed(Walk { path, doubled: self.doubled })?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut index = 0;
        while items
            .next_element_seed(Walk { path: format!("{}[{index}]", self.path), doubled: self.doubled })?
            .is_some()
        {
            index += 1;
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// `worker-3` is the third; readers of a `group_list` number ranks by these.
pub(super) fn pod_number(name: &str) -> Option<u64> {
    name.rsplit('-').next()?.parse().ok()
}

/// `die/port`, or the word for the way to the host.
pub(super) fn is_port(text: &str) -> bool {
    const TO_HOST: &str = "d2h";
    let is_number = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit());
    text == TO_HOST || text.split_once('/').is_some_and(|(die, port)| is_number(die) && is_number(port))
}
