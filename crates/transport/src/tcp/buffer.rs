//! The size of a send buffer, which a kernel of today makes larger as the congestion window grows.
//!
//! Linux 6 gives a connection memory for twice its window (`tcp_sndbuf_expand`), thrice with a controller that says so
//! (`bbr_sndbuf_expand`), and for the first window at least, whenever a writer waits although the window is not full. It
//! counts each full segment as the memory that a packet of that size takes, which is more than its octets; what programs
//! write is kept in large pieces that take little more than theirs. So some 32 segments of 1448 octets are taken at first,
//! where 20 are provided for.

use super::settings::{MOST_BUFFER, Settings};

/// The fewest segments of a window that are provided for (`TCP_INIT_CWND`).
const FIRST_WINDOW: u64 = 10;
/// Octets of memory beside the data of a packet: room for the headers below it (`MAX_TCP_HEADER`; 64 more in kernels that
/// are built for wireless networks) and `skb_shared_info`. With the data they are rounded up to a power of two.
const BESIDE_THE_DATA: u64 = 256 + 320;
/// Octets that describe a packet (`sk_buff`).
const DESCRIPTION: u64 = 256;

/// Octets of memory that a packet of `mss` octets of data is counted as.
const fn memory_of(mss: u32) -> u64 {
    (mss as u64 + BESIDE_THE_DATA).next_power_of_two() + DESCRIPTION
}

impl Settings {
    /// Octets of the send buffer for each segment of `mss` octets in the window; `None` if the buffer does not grow and has
    /// its last size at once.
    pub fn buffer_of_a_segment(&self, mss: u32) -> Option<u64> {
        let times = u64::from(self.congestion.entry().windows_in_buffer);
        self.buffer_grows.then(|| times * memory_of(mss))
    }

    /// Octets that the send buffer grows to for a receiver's window of so many: one that grows has to hold half of a window more,
    /// for its writer sleeps until a third of it is free.
    pub fn send_buffer_for(&self, window: u64) -> u64 {
        let wanted = if self.buffer_grows { window.saturating_mul(2) } else { window };
        self.send_buffer.max(wanted.min(MOST_BUFFER))
    }

    /// Octets that the send buffer has room for if it provides for a window of `segments` of `mss` octets.
    pub fn send_buffer_with(&self, segments: u64, mss: u32) -> u64 {
        let grown = self.buffer_of_a_segment(mss).map(|each| each * segments.max(FIRST_WINDOW));
        grown.map_or(self.send_buffer, |grown| grown.min(self.send_buffer))
    }
}

#[cfg(test)]
mod tests {
    use super::super::congestion::Algorithm;
    use super::super::profile::Profile;
    use super::*;

    /// As `SO_SNDBUF` told of it on Linux 6.18, with windows of 10, 40 and 152 segments.
    #[test]
    fn it_is_what_the_kernel_gives() {
        let linux = Settings::of(Profile::Linux);
        assert_eq!(linux.send_buffer_with(0, 1448), 46_080);
        assert_eq!(linux.send_buffer_with(40, 1448), 184_320);
        assert_eq!(linux.send_buffer_with(152, 524), 700_416);
        let bbr = linux.with_congestion(Algorithm::BBR);
        assert_eq!(bbr.send_buffer_with(0, 1448), 69_120);
        assert_eq!(bbr.send_buffer_with(154, 524), 1_064_448);
    }

    #[test]
    fn it_grows_no_further_than_its_last_size() {
        let linux = Settings::of(Profile::Linux);
        assert_eq!(linux.send_buffer_with(1 << 20, 1448), linux.send_buffer);
        let old = Settings::of(Profile::BsdReno);
        assert_eq!(
            [0, 1 << 20].map(|window| old.send_buffer_with(window, 512)),
            [old.send_buffer; 2]
        );
    }
}
