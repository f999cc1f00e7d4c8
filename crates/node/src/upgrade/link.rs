//! The Unix socket between a node's process and its successor: one packet a message, with at most one descriptor.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, SocketFlags, SocketType,
    recvmsg, sendmsg, shutdown, socketpair, sockopt,
};

/// Maximum size of a message, whose texts are cut to fit.
const PACKET_BYTES_MAX: usize = 64 << 10;

/// One end.
#[derive(Debug)]
pub(crate) struct Link(OwnedFd);

/// A received packet.
pub(crate) struct Packet {
    pub(crate) text: String,
    pub(crate) descriptor: Option<OwnedFd>,
}

impl Link {
    /// Both ends.
    pub(crate) fn pair() -> io::Result<(Self, OwnedFd)> {
        let (own, other) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        Ok((Self(own), other))
    }

    /// An end that this process was started with.
    pub(crate) fn of(fd: OwnedFd) -> io::Result<Self> {
        match sockopt::socket_type(&fd) {
            Ok(SocketType::SEQPACKET) => Ok(Self(fd)),
            Ok(_) | Err(Errno::NOTSOCK) => Err(io::Error::other(
                "expected the socket of a node on standard input: `crosstie upgrade` starts programs so",
            )),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn send(&self, text: &str, descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let passed = descriptor.as_slice();
        if !passed.is_empty() && !control.push(SendAncillaryMessage::ScmRights(passed)) {
            return Err(io::Error::other("no room for a descriptor"));
        }
        let parts = [IoSlice::new(text.as_bytes())];
        loop {
            match sendmsg(&self.0, &parts, &mut control, SendFlags::NOSIGNAL) {
                Err(Errno::INTR) => {}
                sent => return Ok(sent.map(drop)?),
            }
        }
    }

    /// The next packet; `None` if the other end is closed.
    pub(crate) fn receive(&self) -> io::Result<Option<Packet>> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut octets = vec![0; PACKET_BYTES_MAX];
        loop {
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let mut parts = [IoSliceMut::new(&mut octets)];
            let flags = RecvFlags::CMSG_CLOEXEC;
            let received = match recvmsg(&self.0, &mut parts, &mut control, flags) {
                Err(Errno::INTR) => continue,
                // The other process ended with packets unread.
                Err(Errno::CONNRESET) => return Ok(None),
                received => received?,
            };
            if received.bytes == 0 {
                return Ok(None);
            }
            let cut = ReturnFlags::TRUNC | ReturnFlags::CTRUNC;
            if received.flags.intersects(cut) {
                let text = format!(
                    "a message of more than {PACKET_BYTES_MAX} bytes or one descriptor, or no descriptor is free"
                );
                return Err(io::Error::other(text));
            }
            let descriptor = control.drain().find_map(|message| match message {
                RecvAncillaryMessage::ScmRights(mut passed) => passed.next(),
                _ => None,
            });
            let text = octets.get(..received.bytes).unwrap_or_default();
            let text = String::from_utf8_lossy(text).into_owned();
            return Ok(Some(Packet { text, descriptor }));
        }
    }

    /// Ends the exchange in both directions, so that a [`Link::receive`] on another thread returns.
    pub(crate) fn shut(&self) {
        // Fails if the other end is closed.
        let _ = shutdown(&self.0, Shutdown::Both);
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Seek, Write};

    use super::*;

    #[test]
    fn a_packet_arrives_whole_with_its_descriptor() {
        let (one, other) = Link::pair().expect("a pair");
        let other = Link::of(other).expect("a link");
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(b"passed").expect("writes");
        file.rewind().expect("rewinds");
        one.send("first", Some(file.as_fd())).expect("sends");
        one.send("second", None).expect("sends");
        let first = other.receive().expect("receives").expect("a packet");
        assert_eq!(first.text, "first");
        let mut text = String::new();
        let mut passed = File::from(first.descriptor.expect("a descriptor"));
        passed.read_to_string(&mut text).expect("reads");
        assert_eq!(text, "passed");
        let second = other.receive().expect("receives").expect("a packet");
        assert_eq!(
            (second.text.as_str(), second.descriptor.is_none()),
            ("second", true)
        );
        drop(one);
        assert!(other.receive().expect("receives").is_none());
    }

    #[test]
    fn a_packet_that_is_too_long_is_an_error() {
        let (one, other) = Link::pair().expect("a pair");
        let other = Link::of(other).expect("a link");
        one.send(&"x".repeat(PACKET_BYTES_MAX + 1), None)
            .expect("sends");
        assert!(other.receive().is_err());
    }

    #[test]
    fn an_end_that_is_shut_receives_nothing() {
        let (one, _other) = Link::pair().expect("a pair");
        one.shut();
        assert!(one.receive().expect("receives").is_none());
    }

    #[test]
    fn a_file_is_no_link() {
        let file = tempfile::tempfile().expect("a file");
        let error = Link::of(file.into()).expect_err("no socket");
        assert!(
            error.to_string().contains("expected the socket of a node"),
            "{error}"
        );
    }
}
