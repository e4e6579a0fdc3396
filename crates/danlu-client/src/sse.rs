//! Server-sent events, as far as Danlu uses them (WHATWG HTML §9.2.6): `data`, `id`, `event`, comments.
//!
//! The parser takes bytes in any pieces and gives events as their blank line arrives. `retry` is ignored: how to
//! come back is [`LogFollow`](crate::LogFollow)'s choice.

use thiserror::Error;

/// A log line is at most a few hundred kilobytes; an event past this is not ours, and must not eat our memory.
const MOST_EVENT_BYTES: usize = 16 << 20;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SseEvent {
    /// Empty for ordinary messages.
    pub event: String,
    pub data: String,
    /// The cursor after this event, if it came with one of its own.
    pub id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("an event of the stream is longer than {MOST_EVENT_BYTES} bytes")]
pub struct EventTooLong;

#[derive(Debug, Default)]
pub struct SseParser {
    line: Vec<u8>,
    /// A line feed right after a carriage return belongs to it, also across two pieces.
    after_return: bool,
    past_first_line: bool,
    current: SseEvent,
    has_data: bool,
}

impl SseParser {
    /// Reads the next piece of the stream, and gives the events that it completes.
    pub fn push(&mut self, mut piece: &[u8]) -> Result<Vec<SseEvent>, EventTooLong> {
        let mut events = Vec::new();
        if self.after_return && !piece.is_empty() {
            self.after_return = false;
            piece = piece.strip_prefix(b"\n").unwrap_or(piece);
        }
        while let Some(end) = piece.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.line.extend_from_slice(&piece[..end]);
            let returned = piece[end] == b'\r';
            piece = &piece[end + 1..];
            if returned {
                match piece.split_first() {
                    Some((b'\n', rest)) => piece = rest,
                    Some(_) => {}
                    None => self.after_return = true,
                }
            }
            let line = std::mem::take(&mut self.line);
            events.extend(self.take_line(&line));
        }
        self.line.extend_from_slice(piece);
        if self.line.len() + self.current.data.len() > MOST_EVENT_BYTES {
            return Err(EventTooLong);
        }
        Ok(events)
    }

    fn take_line(&mut self, line: &[u8]) -> Option<SseEvent> {
        let mut line = String::from_utf8_lossy(line);
        if !self.past_first_line {
            self.past_first_line = true;
            if let Some(rest) = line.strip_prefix('\u{feff}') {
                line = rest.to_owned().into();
            }
        }
        if line.is_empty() {
            let event = std::mem::take(&mut self.current);
            return std::mem::take(&mut self.has_data).then_some(event);
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if self.has_data {
                    self.current.data.push('\n');
                }
                self.current.data.push_str(value);
                self.has_data = true;
            }
            "id" if !value.contains('\0') => self.current.id = Some(value.to_owned()),
            "event" => value.clone_into(&mut self.current.event),
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(stream: &[u8], cuts: &[usize]) -> Vec<SseEvent> {
        let mut parser = SseParser::default();
        let mut events = Vec::new();
        let (mut rest, mut cuts) = (stream, cuts.iter().cycle());
        while !rest.is_empty() {
            let cut = cuts.next().map_or(rest.len(), |cut| (*cut).min(rest.len()));
            let (piece, tail) = rest.split_at(cut);
            events.extend(parser.push(piece).unwrap());
            rest = tail;
        }
        events
    }

    #[test]
    fn fields_comments_and_line_ends_are_read_as_the_standard_says() {
        let stream = "\u{feff}: keep-alive\r\n\r\nid: 7\rdata: one\r\ndata:two\nevent: x\n\n\ndata\n\nid: 9\n\nretry: 5\ndata:  é\n\n";
        let event = |event: &str, data: &str, id: Option<&str>| SseEvent {
            event: event.to_owned(),
            data: data.to_owned(),
            id: id.map(str::to_owned),
        };
        assert_eq!(
            parse(stream.as_bytes(), &[]),
            [event("x", "one\ntwo", Some("7")), event("", "", None), event("", " é", None)]
        );
    }

    #[test]
    fn an_endless_line_is_refused() {
        let mut parser = SseParser::default();
        let piece = vec![b'x'; MOST_EVENT_BYTES / 2];
        assert!(parser.push(&piece).is_ok());
        assert!(parser.push(&piece).is_ok());
        assert_eq!(parser.push(b"x"), Err(EventTooLong));
    }

    proptest! {
        #[test]
        fn events_do_not_depend_on_where_the_stream_is_cut(
            parts in prop::collection::vec(
                prop_oneof![
                    Just("data: ".to_owned()), Just("id: ".to_owned()), Just(":".to_owned()), Just("\r".to_owned()),
                    Just("\n".to_owned()), Just("\r\n".to_owned()), Just("\n\n".to_owned()), "[a-zé:\u{feff} ]{0,6}",
                ],
                0..40,
            ),
            cuts in prop::collection::vec(1usize..6, 1..10),
        ) {
            let stream = parts.concat();
            prop_assert_eq!(parse(stream.as_bytes(), &cuts), parse(stream.as_bytes(), &[]));
        }

        #[test]
        fn no_bytes_make_the_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes, &[3]);
        }
    }
}
