//! A netlink socket that asks one thing and waits for the answer.

use crate::LabError;
use crate::error::Step;
use crate::message::{attribute, u16_at, u32_at};
use crate::sys;
use std::io;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, OwnedFd};

/// Bytes of `struct nlmsghdr`.
const HEADER: usize = 16;
/// Room for one datagram of answers; the kernel's dumps come in pieces of at most 32 KiB.
const ROOM: usize = 64 * 1024;
/// The kernel answers within its own system call; this only bounds a fault.
const PATIENCE_SECONDS: u32 = 5;
/// The acknowledgement carries attributes (`NLM_F_ACK_TLVS`).
const ACK_TLVS: u16 = 0x200;
/// The acknowledgement does not repeat the request (`NLM_F_CAPPED`).
const CAPPED: u16 = 0x100;
/// The attribute with the kernel's words (`NLMSGERR_ATTR_MSG`).
const ACK_TEXT: u16 = 1;

/// One message to the kernel, without its header.
pub(crate) struct Request<'a> {
    /// The type, as `RTM_NEWLINK`.
    pub kind: u16,
    /// Flags beside `NLM_F_REQUEST`.
    pub flags: u16,
    /// Header of the message type and attributes.
    pub payload: &'a [u8],
}

/// An answer: type and payload.
pub(crate) type Answer = (u16, Vec<u8>);

/// A socket of one netlink family, bound for its life to the namespace it was opened in.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: OwnedFd,
    sequence: u32,
}

impl Netlink {
    /// A socket of `family` (`NETLINK_ROUTE`, `NETLINK_NETFILTER`) in the calling thread's namespace.
    pub(crate) fn open(family: i32) -> Result<Netlink, LabError> {
        Netlink::open_raw(family).step(|| "open a netlink socket".into())
    }

    fn open_raw(family: i32) -> io::Result<Netlink> {
        let socket = sys::socket(libc::AF_NETLINK, libc::SOCK_RAW, family)?;
        sys::limit_reads(socket.as_fd(), PATIENCE_SECONDS)?;
        // Both only improve the errors that we can show; kernels before 4.12 lack them.
        for option in [libc::NETLINK_CAP_ACK, libc::NETLINK_EXT_ACK] {
            let _ = sys::switch_on(socket.as_fd(), libc::SOL_NETLINK, option);
        }
        Ok(Netlink { socket, sequence: 0 })
    }

    /// Sends one message and gathers the answers until its acknowledgement or the end of its dump.
    /// `what` names the step in an error.
    pub(crate) fn ask(
        &mut self,
        what: &str,
        request: &Request<'_>,
    ) -> Result<Vec<Answer>, LabError> {
        self.ask_all(what, std::slice::from_ref(request))
    }

    /// Sends several messages at once (an nf_tables batch) and waits for an acknowledgement of each that
    /// asks for one.
    pub(crate) fn ask_all(
        &mut self,
        what: &str,
        requests: &[Request<'_>],
    ) -> Result<Vec<Answer>, LabError> {
        let first = self.sequence.wrapping_add(1);
        let ends = (libc::NLM_F_ACK | libc::NLM_F_DUMP) as u16;
        let awaited = requests.iter().filter(|request| request.flags & ends != 0).count();
        let bytes: Vec<u8> = requests.iter().flat_map(|request| self.encode(request)).collect();
        sys::send(self.socket.as_fd(), &bytes).step(|| what.to_owned())?;
        self.gather(what, first..=self.sequence, awaited)
    }

    fn encode(&mut self, request: &Request<'_>) -> Vec<u8> {
        self.sequence = self.sequence.wrapping_add(1);
        let length = (HEADER + request.payload.len()) as u32;
        let flags = request.flags | libc::NLM_F_REQUEST as u16;
        let mut bytes = length.to_ne_bytes().to_vec();
        bytes.extend_from_slice(&request.kind.to_ne_bytes());
        bytes.extend_from_slice(&flags.to_ne_bytes());
        bytes.extend_from_slice(&self.sequence.to_ne_bytes());
        bytes.extend_from_slice(&0u32.to_ne_bytes());
        bytes.extend_from_slice(request.payload);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn gather(
        &self,
        what: &str,
        numbers: RangeInclusive<u32>,
        awaited: usize,
    ) -> Result<Vec<Answer>, LabError> {
        let mut answers = Vec::new();
        let mut ended = 0;
        while ended < awaited {
            let datagram = self.receive().step(|| format!("{what} (no answer from the kernel)"))?;
            ended += sort(what, &datagram, &numbers, &mut answers)?;
        }
        Ok(answers)
    }

    fn receive(&self) -> io::Result<Vec<u8>> {
        let mut buffer = vec![0; ROOM];
        let length = loop {
            match sys::receive(self.socket.as_fd(), &mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        if length > ROOM {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "an answer above 64 KiB"));
        }
        buffer.truncate(length);
        Ok(buffer)
    }
}

/// Takes the answers to the requests of these `numbers` out of a datagram. Returns how many requests it ends.
pub(crate) fn sort(
    what: &str,
    datagram: &[u8],
    numbers: &RangeInclusive<u32>,
    answers: &mut Vec<Answer>,
) -> Result<usize, LabError> {
    let mut ended = 0;
    for message in Messages(datagram).filter(|message| numbers.contains(&message.sequence)) {
        match verdict(&message) {
            Verdict::End => ended += 1,
            Verdict::Refused { source, detail } => {
                return Err(LabError::Netlink { what: what.to_owned(), source, detail });
            }
            Verdict::Answer => answers.push((message.kind, message.payload.to_vec())),
        }
    }
    Ok(ended)
}

/// One message of a datagram.
struct Message<'a> {
    kind: u16,
    flags: u16,
    sequence: u32,
    payload: &'a [u8],
}

/// The messages of a datagram, up to the first that does not fit.
struct Messages<'a>(&'a [u8]);

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;
    fn next(&mut self) -> Option<Message<'a>> {
        let length = u32_at(self.0, 0)? as usize;
        let (kind, flags) = (u16_at(self.0, 4)?, u16_at(self.0, 6)?);
        let sequence = u32_at(self.0, 8)?;
        let payload = self.0.get(HEADER..length)?;
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Message { kind, flags, sequence, payload })
    }
}

/// The meaning of a message for the request that it answers.
enum Verdict {
    End,
    Refused { source: io::Error, detail: Option<String> },
    Answer,
}

fn verdict(message: &Message<'_>) -> Verdict {
    match i32::from(message.kind) {
        libc::NLMSG_DONE => Verdict::End,
        libc::NLMSG_ERROR => match u32_at(message.payload, 0).unwrap_or(0) as i32 {
            0 => Verdict::End,
            code => Verdict::Refused {
                source: io::Error::from_raw_os_error(code.wrapping_neg()),
                detail: kernel_words(message),
            },
        },
        _ => Verdict::Answer,
    }
}

/// The text of an extended acknowledgement: it follows the error code and the request's header, or the
/// whole request if the kernel repeats it.
fn kernel_words(message: &Message<'_>) -> Option<String> {
    if message.flags & ACK_TLVS == 0 {
        return None;
    }
    let repeated = u32_at(message.payload, 4)? as usize;
    let start = if message.flags & CAPPED != 0 { 4 + HEADER } else { 4 + repeated };
    let text = attribute(message.payload.get(start..)?, ACK_TEXT)?;
    Some(String::from_utf8_lossy(text).trim_end_matches('\0').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_datagram_is_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for message in Messages(&bytes) {
                verdict(&message);
            }
        }
    }

    #[test]
    fn an_unknown_device_is_refused_with_its_errno() {
        let mut route = Netlink::open(libc::NETLINK_ROUTE).unwrap();
        let payload = crate::message::Payload::new(&[0; 16]).text(libc::IFLA_IFNAME, "tl-none");
        let request = Request {
            kind: libc::RTM_GETLINK,
            flags: libc::NLM_F_ACK as u16,
            payload: payload.bytes(),
        };
        let error = route.ask("find tl-none", &request).unwrap_err();
        assert_eq!(error.errno(), Some(libc::ENODEV), "{error}");
    }
}
