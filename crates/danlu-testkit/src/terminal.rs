//! A program on a terminal, as a person has it: what it shows, what is typed, the window's size.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use pty_process::{Command, OwnedWritePty, Size};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Child;
use tokio::task::JoinHandle;

use crate::{DEADLINE, eventually};

pub const CTRL_C: &[u8] = b"\x03";

/// A running program that believes a person is looking at it. Dropping it kills the program.
#[derive(Debug)]
pub struct Terminal {
    child: Child,
    keyboard: OwnedWritePty,
    shown: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Terminal {
    /// Starts `danlu` for a data folder, in a window of so many rows and columns.
    pub fn start(binary: &str, data: &Path, arguments: &[&str], (rows, columns): (u16, u16)) -> Self {
        let (pty, pts) = pty_process::open().expect("a terminal can be had");
        pty.resize(Size::new(rows, columns)).expect("a terminal has a size");
        let mut command = Command::new(binary).arg("--data").arg(data).args(arguments).kill_on_drop(true);
        for name in ["DANLU_SERVER", "DANLU_TOKEN", "DANLU_DATA"] {
            command = command.env_remove(name);
        }
        let child = command.env("TERM", "xterm").env("NO_COLOR", "1").spawn(pts).expect("the binary starts");
        let (mut screen, keyboard) = pty.into_split();
        let shown = Arc::new(Mutex::new(Vec::new()));
        let reader = tokio::spawn({
            let shown = shown.clone();
            async move {
                let mut buffer = [0; 4096];
                // A terminal that nobody has open any more is an error to read, not an end.
                while let Ok(count @ 1..) = screen.read(&mut buffer).await {
                    shown.lock().unwrap_or_else(PoisonError::into_inner).extend(&buffer[..count]);
                }
            }
        });
        Terminal { child, keyboard, shown, reader }
    }

    /// Everything shown so far, with the terminal's line ends made plain.
    pub fn shown(&self) -> String {
        let bytes = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).replace("\r\n", "\n")
    }

    pub async fn wait_for(&self, text: &str) {
        let found = async || self.shown().contains(text).then_some(());
        let waited = tokio::time::timeout(DEADLINE / 2, eventually("the terminal", found)).await;
        assert!(waited.is_ok(), "waited in vain for `{text}` on the terminal:\n{}", self.shown());
    }

    pub async fn type_in(&mut self, bytes: &[u8]) {
        self.keyboard.write_all(bytes).await.expect("the terminal takes input");
    }

    pub fn resize(&self, rows: u16, columns: u16) {
        self.keyboard.resize(Size::new(rows, columns)).expect("a terminal has a size");
    }

    /// Waits for the program's end: its exit code, and all that was shown.
    pub async fn end(mut self) -> (Option<i32>, String) {
        let ended = tokio::time::timeout(DEADLINE, self.child.wait()).await;
        let Ok(status) = ended else { panic!("the program does not end:\n{}", self.shown()) };
        let code = status.expect("it can be waited for").code();
        (&mut self.reader).await.expect("reading does not panic");
        (code, self.shown())
    }
}
