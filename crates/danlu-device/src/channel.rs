//! Messages that carry an open file, between a process and a child that it started for them.
//!
//! A pair of sockets that keep messages apart. The other side's end is an end of messages here, whatever it died of.

#![expect(unsafe_code, reason = "an open file arrives from the kernel as a bare number")]

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use nix::cmsg_space;
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, Shutdown, SockFlag, SockType, recvmsg,
    sendmsg, shutdown, socketpair,
};
use nix::unistd::dup2_stdin;

/// A path has 4,096 bytes at most, and there is little else in a message.
const LONGEST_MESSAGE: usize = 8192;

#[derive(Debug)]
pub struct Channel {
    socket: OwnedFd,
}

/// What came through a [`Channel`].
#[derive(Debug)]
pub struct Message {
    pub text: Vec<u8>,
    pub file: Option<File>,
}

impl Channel {
    /// Our end, and the one that becomes a child's standard input.
    pub fn pair() -> io::Result<(Channel, OwnedFd)> {
        let (socket, other) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?;
        Ok((Channel { socket }, other))
    }

    /// The other end, in that child. Afterwards its standard input is empty: children of its own must not find the socket.
    pub fn from_stdin() -> io::Result<Channel> {
        let socket = io::stdin().as_fd().try_clone_to_owned()?;
        dup2_stdin(OpenOptions::new().read(true).open("/dev/null")?)?;
        Ok(Channel { socket })
    }

    /// Sends a message, which must not be empty. Never waits: where the other side does not read and too much lies
    /// unread, the error is `WouldBlock`.
    pub fn send(&self, text: &[u8], file: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let number = file.map(|file| [file.as_raw_fd()]);
        let rights = number.as_ref().map(|number| ControlMessage::ScmRights(number));
        // Without a signal where nobody is left to read: the error says so.
        let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
        sendmsg::<()>(self.socket.as_raw_fd(), &[IoSlice::new(text)], rights.as_slice(), flags, None)?;
        Ok(())
    }

    /// Waits for a message; `None` when the other side is gone.
    pub fn receive(&self) -> io::Result<Option<Message>> {
        let mut text = vec![0; LONGEST_MESSAGE];
        let mut space = cmsg_space!([i32; 1]);
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        let (length, mut files) = {
            let mut parts = [IoSliceMut::new(&mut text)];
            let received = recvmsg::<()>(self.socket.as_raw_fd(), &mut parts, Some(&mut space), flags)?;
            let mut files = Vec::new();
            for part in received.cmsgs()? {
                if let ControlMessageOwned::ScmRights(numbers) = part {
                    // SAFETY: the kernel has just opened these for us, and nobody else knows of them.
                    files.extend(numbers.into_iter().map(|number| unsafe { File::from_raw_fd(number) }));
                }
            }
            (received.bytes, files)
        };
        text.truncate(length);
        Ok((length > 0).then(|| Message { text, file: files.pop() }))
    }

    /// Ends the conversation for both sides, also for a thread that waits in [`Channel::receive`].
    pub fn close(&self) {
        // Fails only where the other side has closed it already.
        let _ = shutdown(self.socket.as_raw_fd(), Shutdown::Both);
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, Write};

    use super::*;

    #[test]
    fn messages_stay_apart_and_bring_their_files() {
        let (ours, theirs) = Channel::pair().unwrap();
        let theirs = Channel { socket: theirs };
        let mut file = tempfile::tempfile().unwrap();
        ours.send(b"first", Some(file.as_fd())).unwrap();
        ours.send(b"second", None).unwrap();

        let first = theirs.receive().unwrap().unwrap();
        assert_eq!(first.text, b"first");
        first.file.unwrap().write_all(b"written there").unwrap();
        let second = theirs.receive().unwrap().unwrap();
        assert!(second.text == b"second" && second.file.is_none());

        let mut text = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "written there");
        ours.close();
        assert!(theirs.receive().unwrap().is_none());
        assert!(theirs.send(b"too late", None).is_err());
    }
}
