//! The terminal in raw mode, given back as it was on every way out.

use std::io::{self, IsTerminal as _, Stdin};

use danlu_types::session::TerminalSize;
use nix::sys::termios::{LocalFlags, SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};

/// Raw mode for as long as this lives; a panic drops it, too.
#[derive(Debug)]
pub(crate) struct RawMode {
    stdin: Stdin,
    before: Termios,
}

impl RawMode {
    pub(crate) fn enter() -> io::Result<Self> {
        let stdin = io::stdin();
        let before = tcgetattr(&stdin)?;
        let mut raw = before.clone();
        cfmakeraw(&mut raw);
        tcsetattr(&stdin, SetArg::TCSADRAIN, &raw)?;
        Ok(RawMode { stdin, before })
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // There is no better way to say it than the terminal we just failed to restore.
        let _ = tcsetattr(&self.stdin, SetArg::TCSADRAIN, &self.before);
    }
}

/// The size of the terminal; the classic one where there is none.
pub(crate) fn size() -> TerminalSize {
    let (columns, rows) = terminal_size::terminal_size()
        .map_or((80, 24), |(terminal_size::Width(columns), terminal_size::Height(rows))| (columns, rows));
    TerminalSize { rows, columns }
}

/// A line that is not shown while it is typed; from a pipe, its first line.
pub(crate) fn ask_secret(prompt: &str) -> io::Result<String> {
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        return read_line(&mut stdin.lock());
    }
    anstream::eprint!("{prompt}");
    let before = tcgetattr(&stdin)?;
    let mut silent = before.clone();
    silent.local_flags.remove(LocalFlags::ECHO);
    tcsetattr(&stdin, SetArg::TCSADRAIN, &silent)?;
    let line = read_line(&mut stdin.lock());
    tcsetattr(&stdin, SetArg::TCSADRAIN, &before)?;
    anstream::eprintln!();
    line
}

fn read_line(from: &mut impl io::BufRead) -> io::Result<String> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
