//! Counts of what happened on a channel.

/// Counters of both directions of one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Of what this end sends.
    pub sending: Sending,
    /// Of what this end receives.
    pub receiving: Receiving,
}

/// Counts of the transmitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sending {
    /// Blocks sent for the first time; in modes without trailers, requests sent.
    pub blocks: u64,
    /// Blocks sent again.
    pub resent: u64,
    /// Times that it went back to the first unacknowledged block.
    pub went_back: u64,
    /// REJs that came from the other end.
    pub rejects: u64,
    /// Enquiries sent (ENQ; in character mode, repeated numbers).
    pub enquiries: u64,
    /// Times that the timer ran out.
    pub timeouts: u64,
    /// Initialisations begun.
    pub initialisations: u64,
    /// User octets given up unechoed: by an initialisation, by detection mode, or by closing.
    pub abandoned: u64,
}

/// Counts of the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Receiving {
    /// Blocks found good.
    pub blocks: u64,
    /// Bad blocks whose trailer was not whole.
    pub bad_trailer: u64,
    /// Bad blocks whose length was not the count of what came.
    pub bad_count: u64,
    /// Bad blocks whose number was not the next.
    pub bad_sequence: u64,
    /// Bad blocks whose check sum was wrong or missing.
    pub bad_crc: u64,
    /// Whole blocks known to have been accepted before, passed over without a REJ (default profile).
    pub duplicates: u64,
    /// REJs sent.
    pub rejects: u64,
    /// Enquiries answered.
    pub enquiries: u64,
}

impl Receiving {
    /// Bad blocks of every cause.
    pub const fn bad(&self) -> u64 {
        self.bad_trailer + self.bad_count + self.bad_sequence + self.bad_crc
    }
}
