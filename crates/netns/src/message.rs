//! Netlink payloads: a fixed header followed by attributes, written and read with bounds checked.
//!
//! An attribute is its length (header included), its type and its value, padded to four bytes
//! (`linux/netlink.h`, `struct nlattr`).

/// The flag of an attribute that holds attributes (`NLA_F_NESTED`).
const NESTED: u16 = 1 << 15;
/// The bits of an attribute's type that are flags (`NLA_TYPE_MASK` is their complement).
const FLAGS: u16 = 3 << 14;
/// Bytes of an attribute's header.
const HEADER: usize = 4;

/// A payload under construction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Payload(Vec<u8>);

impl Payload {
    /// A payload that starts with the fixed `header` of its message type.
    pub(crate) fn new(header: &[u8]) -> Payload {
        let mut payload = Payload(header.to_vec());
        payload.pad();
        payload
    }
    /// The bytes written.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
    /// Appends an attribute.
    pub(crate) fn attr(mut self, kind: u16, value: &[u8]) -> Payload {
        // Attributes of this crate are far below 64 KiB; a longer one is a mistake in the caller.
        let length = u16::try_from(HEADER + value.len()).expect("an attribute below 64 KiB");
        self.0.extend_from_slice(&length.to_ne_bytes());
        self.0.extend_from_slice(&kind.to_ne_bytes());
        self.0.extend_from_slice(value);
        self.pad();
        self
    }
    /// Appends a number in the machine's byte order, as rtnetlink wants it.
    pub(crate) fn u32(self, kind: u16, value: u32) -> Payload {
        self.attr(kind, &value.to_ne_bytes())
    }
    /// Appends a number in network byte order, as nf_tables wants it.
    pub(crate) fn be32(self, kind: u16, value: u32) -> Payload {
        self.attr(kind, &value.to_be_bytes())
    }
    /// Appends text with its closing zero.
    pub(crate) fn text(self, kind: u16, value: &str) -> Payload {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.attr(kind, &bytes)
    }
    /// Appends an attribute that holds the attributes of `inner`.
    pub(crate) fn nest(self, kind: u16, inner: &Payload) -> Payload {
        self.attr(kind | NESTED, inner.bytes())
    }
    /// Appends an attribute if there is a value for it.
    pub(crate) fn maybe(self, kind: u16, value: Option<&[u8]>) -> Payload {
        match value {
            Some(value) => self.attr(kind, value),
            None => self,
        }
    }
    fn pad(&mut self) {
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }
}

/// The attributes in `bytes`, up to the first one that does not fit.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(bytes, 0)?);
        let kind = u16_at(bytes, 2)? & !FLAGS;
        let value = bytes.get(HEADER..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The value of the first attribute of this kind.
pub(crate) fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).find_map(|(found, value)| (found == kind).then_some(value))
}

/// The number at `offset`, in the machine's byte order.
pub(crate) fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(offset..offset + 2)?.try_into().ok()?))
}

/// The number at `offset`, in the machine's byte order.
pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(offset..offset + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(values in prop::collection::vec((0u16..999, prop::collection::vec(any::<u8>(), 0..40)), 0..9)) {
            let payload = values.iter().fold(Payload::new(&[]), |p, (kind, value)| p.attr(*kind, value));
            let read: Vec<_> = attributes(payload.bytes()).map(|(k, v)| (k, v.to_vec())).collect();
            prop_assert_eq!(read, values);
        }

        #[test]
        fn any_bytes_end_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(attributes(&bytes).count() <= bytes.len() / HEADER);
        }
    }

    #[test]
    fn nesting_sets_the_flag_and_reads_without_it() {
        let inner = Payload::default().text(1, "veth");
        let outer = Payload::new(&[9; 3]).nest(18, &inner);
        assert_eq!(u16_at(outer.bytes(), 6), Some(18 | NESTED));
        assert_eq!(attribute(&outer.bytes()[4..], 18), Some(inner.bytes()));
        assert_eq!(attribute(inner.bytes(), 1), Some(&b"veth\0"[..]));
    }
}
