//! The terminal in raw mode, given back as it was on every way out.

use std::io::{self, Stdin};

use danlu_types::session::TerminalSize;
use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};

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
