//! Offloads of a device: what it does to packets behind the back of whoever reads its frames.
//!
//! With them on, a packet socket sees super-packets of up to 64 KiB and sums that nobody has finished.
//! The names are the kernel's own (`netdev_features_strings`), read from the device; the commands are
//! those of `linux/ethtool.h`.

use crate::error::Step;
use crate::link::check_name;
use crate::{LabError, Namespace, sys};
use serde::{Deserialize, Serialize};

const GSTRINGS: u32 = 0x1b;
const GSSET_INFO: u32 = 0x37;
const GFEATURES: u32 = 0x3a;
const SFEATURES: u32 = 0x3b;
/// The set of strings that names the features (`ETH_SS_FEATURES`).
const FEATURE_NAMES: u32 = 4;
/// Bytes of one name (`ETH_GSTRING_LEN`).
const NAME_LENGTH: usize = 32;
/// Words of a block in the answer to GFEATURES: available, requested, active, never changed.
const BLOCK: usize = 4;

/// Parts of the names of what joins packets or cuts them late.
const SUPER_PACKETS: [&str; 5] = ["segmentation", "-gro", "-lro", "-gso", "fragmentation"];
/// Parts of the names of what leaves sums unfinished.
const SUMS: [&str; 2] = ["tx-checksum", "rx-checksum"];

/// The offload settings of a device, to be put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedOffloads {
    /// The device's name.
    pub device: String,
    /// Each offload that can be changed, and whether it was asked for.
    pub wanted: Vec<(String, bool)>,
}

/// One feature as the kernel tells it.
#[derive(Debug, Clone)]
struct Feature {
    name: String,
    /// It can be switched.
    changeable: bool,
    wanted: bool,
    active: bool,
}

impl Feature {
    fn has(&self, parts: &[&str]) -> bool {
        parts.iter().any(|part| self.name.contains(part))
    }
    fn hides_frames(&self) -> bool {
        self.has(&SUPER_PACKETS) || self.has(&SUMS)
    }
}

impl Namespace {
    /// The active offloads of the device that make its frames differ from what goes on a wire
    /// (segmentation, receive merging, sums left to the hardware), by the kernel's names, in its order.
    ///
    /// # Errors
    /// If there is no such device.
    pub fn offloads(&self, device: &str) -> Result<Vec<String>, LabError> {
        Ok(names(self.features(device)?, |feature| feature.active && feature.hides_frames()))
    }

    /// The part of [`offloads`](Namespace::offloads) that joins several packets into one.
    ///
    /// # Errors
    /// If there is no such device.
    pub fn super_packet_offloads(&self, device: &str) -> Result<Vec<String>, LabError> {
        Ok(names(self.features(device)?, |feature| feature.active && feature.has(&SUPER_PACKETS)))
    }

    /// The present settings, for [`restore_offloads`](Namespace::restore_offloads).
    ///
    /// # Errors
    /// If there is no such device.
    pub fn save_offloads(&self, device: &str) -> Result<SavedOffloads, LabError> {
        let features = self.features(device)?.into_iter();
        let changeable = features.filter(|feature| feature.changeable && feature.hides_frames());
        let wanted = changeable.map(|feature| (feature.name, feature.wanted)).collect();
        Ok(SavedOffloads { device: device.to_owned(), wanted })
    }

    /// Switches off every offload that hides frames and gives back the settings from before. What the
    /// device cannot switch off stays: [`offloads`](Namespace::offloads) tells it.
    ///
    /// # Errors
    /// If there is no such device or it may not be changed.
    pub fn set_offloads_off(&self, device: &str) -> Result<SavedOffloads, LabError> {
        let saved = self.save_offloads(device)?;
        let off: Vec<_> = saved.wanted.iter().map(|(name, _)| (name.clone(), false)).collect();
        self.want(device, &off)?;
        Ok(saved)
    }

    /// Puts the saved settings back.
    ///
    /// # Errors
    /// If the device is gone or may not be changed.
    pub fn restore_offloads(&self, saved: &SavedOffloads) -> Result<(), LabError> {
        self.want(&saved.device, &saved.wanted)
    }

    fn want(&self, device: &str, wanted: &[(String, bool)]) -> Result<(), LabError> {
        let features = self.features(device)?;
        let mut command = vec![0; 2 + 2 * features.len().div_ceil(32)];
        command[0] = SFEATURES;
        command[1] = (command.len() as u32 - 2) / 2;
        for (bit, feature) in features.iter().enumerate().filter(|(_, f)| f.changeable) {
            let asked = wanted.iter().find(|(name, _)| *name == feature.name);
            if let Some((_, on)) = asked {
                // Blocks of two words: which bits are meant, and what they shall be.
                command[2 + bit / 32 * 2] |= 1 << (bit % 32);
                command[3 + bit / 32 * 2] |= u32::from(*on) << (bit % 32);
            }
        }
        self.ethtool(device, &mut command, "change the offloads")
    }

    fn features(&self, device: &str) -> Result<Vec<Feature>, LabError> {
        check_name(device)?;
        let names = self.feature_names(device)?;
        let blocks = names.len().div_ceil(32);
        let mut command = vec![0; 2 + BLOCK * blocks];
        command[0] = GFEATURES;
        command[1] = blocks as u32;
        self.ethtool(device, &mut command, "read the offloads")?;
        let named = names.into_iter().enumerate();
        Ok(named.map(|(bit, name)| feature(name, bit, &command[2..])).collect())
    }

    /// The names of all features; an empty name is a bit without a feature.
    fn feature_names(&self, device: &str) -> Result<Vec<String>, LabError> {
        let count = self.feature_count(device)?;
        let mut command = vec![0u32; 3 + count * NAME_LENGTH / 4];
        command[..3].copy_from_slice(&[GSTRINGS, FEATURE_NAMES, count as u32]);
        self.ethtool(device, &mut command, "read the names of the offloads")?;
        let bytes: Vec<u8> = command[3..].iter().flat_map(|word| word.to_ne_bytes()).collect();
        Ok(bytes.chunks(NAME_LENGTH).map(text).collect())
    }

    fn feature_count(&self, device: &str) -> Result<usize, LabError> {
        let mask = (1u64 << FEATURE_NAMES).to_ne_bytes();
        let half =
            |at: usize| u32::from_ne_bytes([mask[at], mask[at + 1], mask[at + 2], mask[at + 3]]);
        let mut command = [GSSET_INFO, 0, half(0), half(4), 0];
        self.ethtool(device, &mut command, "count the offloads")?;
        Ok(command[4] as usize)
    }

    fn ethtool(&self, device: &str, command: &mut [u32], what: &str) -> Result<(), LabError> {
        match sys::ethtool(self.control(), device, command) {
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {
                Err(LabError::NoDevice(device.to_owned()))
            }
            other => other.step(|| format!("{what} of {device}")).map(drop),
        }
    }
}

fn names(features: Vec<Feature>, keep: impl Fn(&Feature) -> bool) -> Vec<String> {
    features.into_iter().filter(keep).map(|feature| feature.name).collect()
}

fn feature(name: String, bit: usize, blocks: &[u32]) -> Feature {
    let word = |part: usize| blocks[bit / 32 * BLOCK + part] >> (bit % 32) & 1 == 1;
    let changeable = word(0) && !word(3) && !name.is_empty();
    Feature { name, changeable, wanted: word(1), active: word(2) }
}

/// A name up to its closing zero.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_frames_is_told_from_what_does_not() {
        let named = |name: &str| Feature {
            name: name.into(),
            changeable: true,
            wanted: true,
            active: true,
        };
        for hides in
            ["tx-tcp-segmentation", "rx-gro", "rx-lro", "tx-checksum-ip-generic", "tx-gso-list"]
        {
            assert!(named(hides).hides_frames(), "{hides}");
        }
        for shows in ["tx-scatter-gather", "rx-vlan-hw-parse", "highdma", ""] {
            assert!(!named(shows).hides_frames(), "{shows}");
        }
    }

    #[test]
    fn bits_are_read_from_their_block() {
        let blocks = [0, 0, 0, 0, 0b10, 0b10, 0b00, 0b00];
        let read = feature("rx-gro".into(), 33, &blocks);
        assert!(read.changeable && read.wanted && !read.active);
        assert!(!feature("rx-gro".into(), 1, &blocks).changeable);
    }
}
