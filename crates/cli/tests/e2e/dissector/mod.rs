//! The Wireshark dissector of `tools/wireshark`, run by tshark over packets of our codecs and over captures of runs.

mod capsules;
mod emulated;
mod netblt;
mod shark;
