//! Counts of what happened on a connection.

/// Counters of both directions of one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Of what this end sends.
    pub sending: Sending,
    /// Of what this end receives.
    pub receiving: Receiving,
}

/// Counts of the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sending {
    /// Segments with data, a SYN or a FIN sent for the first time.
    pub segments: u64,
    /// Such segments sent again, for whatever reason.
    pub retransmitted: u64,
    /// Octets of the stream that the other end has acknowledged.
    pub acked: u64,
    /// Recoveries begun by duplicate acknowledgements or SACK.
    pub fast_retransmits: u32,
    /// Times that the retransmission timer ran out.
    pub timeouts: u32,
    /// Recoveries and time-outs found out to have been needless.
    pub spurious: u32,
    /// Probes of a closed window.
    pub window_probes: u32,
    /// Tail loss probes (RFC 8985 §7).
    pub tail_probes: u32,
    /// Duplicate acknowledgements that came (RFC 5681 §2).
    pub duplicate_acks: u64,
    /// Acknowledgements that carried the echo of a congestion mark (ECE).
    pub echoes: u64,
    /// Reductions of the window because of such echoes.
    pub echo_reductions: u32,
}

/// Counts of the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Receiving {
    /// Segments with data or a FIN that came, acceptable or not.
    pub segments: u64,
    /// Of them, those that came before something still missing.
    pub out_of_order: u32,
    /// Of them, those that brought nothing new.
    pub duplicates: u32,
    /// Of them, those beyond the window offered, or too old by their time stamp.
    pub refused: u32,
    /// Segments marked "congestion experienced".
    pub marked: u32,
    /// Acknowledgements sent without data.
    pub acks: u64,
}
