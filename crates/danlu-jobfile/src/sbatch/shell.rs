//! The commands of a shell script, as far as they can be told by reading it: words, quotes, substitutions and comments.
//! Nothing is expanded but variables that were set to plain text before; what depends on more is marked as unknown.

use std::collections::BTreeMap;
use std::ops::Range;

/// A simple command: `A=b timeout 5 srun -n 2 python train.py`.
#[derive(Debug, Default)]
pub(super) struct ShellCommand {
    pub(super) words: Vec<ShellWord>,
    /// Ends with `&`.
    pub(super) is_background: bool,
    /// Within `if`, `case` or a function, or after `&&` or `||`: it may never run.
    pub(super) is_conditional: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ShellWord {
    /// Without its quotes.
    pub(super) text: String,
    pub(super) place: Range<usize>,
    /// Says more when it runs than here.
    pub(super) is_unknown: bool,
}

/// Deeper nesting is not a script that somebody wrote.
const DEEPEST: usize = 64;

/// Of words that come out of variables. A long variable that is used often would fill the memory.
const MOST_EXPANDED: usize = 10_000;

/// `begin`: where the text lies in its file.
pub(super) fn commands(text: &str, begin: usize) -> Vec<ShellCommand> {
    let mut reader =
        Reader { text, begin, at: 0, commands: Vec::new(), depth: 0, here_documents: Vec::new() };
    while reader.at < text.len() {
        reader.sequence(None, 0);
    }
    expand(reader.commands)
}

struct Reader<'a> {
    text: &'a str,
    begin: usize,
    at: usize,
    commands: Vec<ShellCommand>,
    /// Of `if`, `case` and `{`.
    depth: usize,
    /// Words that end here-documents whose text begins with the next line.
    here_documents: Vec<String>,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let letter = self.text[self.at..].chars().next()?;
        self.at += letter.len_utf8();
        Some(letter)
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// Commands up to the letter that closes them, or to the end.
    fn sequence(&mut self, close: Option<char>, nesting: usize) {
        let mut command = ShellCommand::default();
        let mut word: Option<ShellWord> = None;
        let mut after_condition = false;
        while let Some(letter) = self.next() {
            let from = self.at - letter.len_utf8();
            match letter {
                _ if Some(letter) == close => break,
                '#' if word.is_none() => {
                    let length = self.rest().find('\n').unwrap_or(self.rest().len());
                    self.at += length;
                }
                '\\' if self.rest().starts_with('\n') => self.at += 1,
                ' ' | '\t' | '\r' => command.words.extend(word.take()),
                '<' if self.rest().starts_with('<') && !self.rest().starts_with("<<") => {
                    command.words.extend(word.take());
                    self.here_document();
                }
                '<' | '>' => {
                    // `2>&1`: the letter after is no end of a command.
                    self.extend(&mut word, letter, from);
                    while self.rest().starts_with(['&', '>', '<', '|']) {
                        let letter = self.next().unwrap_or(' ');
                        self.extend(&mut word, letter, from);
                    }
                }
                '\n' | ';' | '|' | '&' | '(' | ')' => {
                    let is_double = letter != '\n' && self.rest().starts_with(letter);
                    if is_double {
                        self.at += 1;
                    }
                    command.words.extend(word.take());
                    command.is_background = letter == '&' && !is_double;
                    self.end(&mut command, after_condition);
                    after_condition = is_double && matches!(letter, '&' | '|');
                    if letter == '\n' {
                        self.skip_here_documents();
                    }
                }
                _ => self.piece(letter, from, &mut word, nesting),
            }
        }
        command.words.extend(word);
        self.end(&mut command, after_condition);
    }

    /// One letter of a word, or all of something quoted or substituted.
    fn piece(&mut self, letter: char, from: usize, word: &mut Option<ShellWord>, nesting: usize) {
        match letter {
            '\'' => {
                let length = self.rest().find('\'').unwrap_or(self.rest().len());
                let text = self.rest()[..length].to_owned();
                self.at = (self.at + length + 1).min(self.text.len());
                self.extend_by(word, &text, from);
            }
            '"' => {
                self.extend_by(word, "", from);
                while let Some(letter) = self.next() {
                    match letter {
                        '"' => break,
                        '\\' => {
                            let letter = self.next().unwrap_or('\\');
                            if letter != '\n' {
                                self.extend(word, letter, from);
                            }
                        }
                        '$' | '`' => self.piece(letter, from, word, nesting),
                        letter => self.extend(word, letter, from),
                    }
                }
            }
            '\\' => {
                let letter = self.next().unwrap_or('\\');
                self.extend(word, letter, from);
            }
            '$' | '`' if nesting >= DEEPEST => self.unknown(word, "", from),
            '`' => {
                self.unknown(word, "", from);
                self.sequence(Some('`'), nesting + 1);
            }
            '$' if self.rest().starts_with("((") => {
                let length = self.rest().find("))").map_or(self.rest().len(), |length| length + 2);
                self.at += length;
                self.unknown(word, "", from);
            }
            '$' if self.rest().starts_with('(') => {
                self.at += 1;
                self.unknown(word, "", from);
                self.sequence(Some(')'), nesting + 1);
            }
            '$' if self.rest().starts_with('{') => {
                let length = self.rest().find('}').map_or(self.rest().len(), |length| length + 1);
                let name = self.rest()[..length].trim_matches(['{', '}']).to_owned();
                self.at += length;
                self.unknown(word, &format!("${name}"), from);
            }
            '$' => {
                let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
                let length = self.rest().find(|letter| !is_name(letter)).unwrap_or(self.rest().len());
                let name = format!("${}", &self.rest()[..length]);
                self.at += length;
                self.unknown(word, &name, from);
            }
            letter => self.extend(word, letter, from),
        }
    }

    fn extend(&self, word: &mut Option<ShellWord>, letter: char, from: usize) {
        self.extend_by(word, letter.encode_utf8(&mut [0; 4]), from);
    }

    fn extend_by(&self, word: &mut Option<ShellWord>, text: &str, from: usize) {
        let start = self.begin + from;
        let word = word.get_or_insert_with(|| ShellWord { place: start..start, ..ShellWord::default() });
        word.text.push_str(text);
        word.place.end = self.begin + self.at;
    }

    fn unknown(&self, word: &mut Option<ShellWord>, text: &str, from: usize) {
        self.extend_by(word, text, from);
        if let Some(word) = word {
            word.is_unknown = true;
        }
    }

    fn end(&mut self, command: &mut ShellCommand, after_condition: bool) {
        let mut command = std::mem::take(command);
        for word in &command.words {
            match word.text.as_str() {
                "if" | "case" | "{" => self.depth += 1,
                "fi" | "esac" | "}" => self.depth = self.depth.saturating_sub(1),
                "then" | "else" | "do" | "!" | "while" | "until" | "time" | "exec" => {}
                _ => break,
            }
        }
        command.is_conditional = self.depth > 0 || after_condition;
        if !command.words.is_empty() {
            self.commands.push(command);
        }
    }

    fn here_document(&mut self) {
        self.at += 1;
        let line = self.rest().split('\n').next().unwrap_or_default();
        let trimmed = line.trim_start_matches('-').trim_start();
        let length =
            trimmed.find(|it: char| it.is_whitespace() || ";|&)".contains(it)).unwrap_or(trimmed.len());
        let end = trimmed[..length].trim_matches(['\'', '"', '\\']).to_owned();
        self.at += line.len() - trimmed.len() + length;
        self.here_documents.push(end);
    }

    fn skip_here_documents(&mut self) {
        for end in std::mem::take(&mut self.here_documents) {
            while self.at < self.text.len() {
                let line = self.rest().split_inclusive('\n').next().unwrap_or_default();
                let is_end = line.trim() == end;
                self.at += line.len();
                if is_end {
                    break;
                }
            }
        }
    }
}

/// Words that are a variable become the plain text that it was set to before.
fn expand(commands: Vec<ShellCommand>) -> Vec<ShellCommand> {
    let mut values: BTreeMap<String, String> = BTreeMap::new();
    let mut expanded = Vec::with_capacity(commands.len());
    let mut left = MOST_EXPANDED;
    for mut command in commands {
        let mut words = Vec::with_capacity(command.words.len());
        for word in std::mem::take(&mut command.words) {
            let value = word.text.strip_prefix('$').and_then(|name| values.get(name));
            let Some(value) = value.filter(|_| word.is_unknown && left > 0) else {
                words.push(word);
                continue;
            };
            let before = words.len();
            words.extend(value.split_whitespace().take(left).map(|text| ShellWord {
                text: text.to_owned(),
                place: word.place.clone(),
                is_unknown: text.contains('$'),
            }));
            // A value without words costs a look at it all the same.
            left -= (words.len() - before).clamp(1, left);
        }
        let set =
            words.iter().skip_while(|word| ["export", "local", "readonly"].contains(&word.text.as_str()));
        for word in set {
            match word.text.split_once('=') {
                Some((name, value)) if is_variable(name) && !word.is_unknown => {
                    values.insert(name.to_owned(), value.to_owned());
                }
                Some((name, _)) if is_variable(name) => {
                    values.remove(name);
                }
                _ => break,
            }
        }
        command.words = words;
        expanded.push(command);
    }
    expanded
}

pub(super) fn is_variable(name: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
        && name.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_apart() {
        let text = r#"
            # srun in a comment
            ARGS="--wait=60 -K"   # more
            export PLAIN='a b'
            A=1 srun $ARGS --label \
                python "it's.py" $PLAIN > out.txt 2>&1 &
            hosts=$(srun -n2 hostname | sort)
            if true; then srun one; else srun two; fi; srun three && srun four
            cat << 'END' > file
            srun in text
END
            echo "count $(srun five | wc -l) `srun six`" <<< "$x"
            f() { srun seven; }"#;
        let shown: Vec<String> = commands(text, 0)
            .iter()
            .map(|command| {
                let words: Vec<&str> = command.words.iter().map(|word| word.text.as_str()).collect();
                let background = if command.is_background { " &" } else { "" };
                let conditional = if command.is_conditional { " ?" } else { "" };
                format!("{}{background}{conditional}", words.join("|"))
            })
            .collect();
        insta::assert_snapshot!(shown.join("\n"), @r"
        ARGS=--wait=60 -K
        export|PLAIN=a b
        A=1|srun|--wait=60|-K|--label|python|it's.py|a|b|>|out.txt|2>&1 &
        srun|-n2|hostname
        sort
        hosts=
        if|true ?
        then|srun|one ?
        else|srun|two ?
        fi
        srun|three
        srun|four ?
        cat|>|file
        srun|five
        wc|-l
        srun|six
        echo|count  |<<<|$x
        f
        {|srun|seven ?
        }
        ");
    }

    proptest::proptest! {
        #[test]
        fn every_text_is_read_to_its_end(text in "[a-z$`(){}'\"\\\\<>&|;#= \n]{0,200}") {
            for command in commands(&text, 0) {
                for word in command.words {
                    proptest::prop_assert!(text.get(word.place.clone()).is_some(), "{word:?}");
                }
            }
        }
    }

    #[test]
    fn variables_do_not_grow_a_script_without_end() {
        let script = format!("A='{}'\n{}\n", "x ".repeat(1000), "$A ".repeat(1000));
        let words: usize = commands(&script, 0).iter().map(|command| command.words.len()).sum();
        assert!(words <= MOST_EXPANDED + 1001, "{words} words");
    }
}
