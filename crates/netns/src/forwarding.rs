//! Passing packets on between a laboratory's device and others of the host, and for nobody else.
//!
//! The host's switch for all devices (`net/ipv4/ip_forward`) is left alone: writing it rewrites the settings of every
//! device, among them `accept_redirects` (ip-sysctl.rst). A packet is passed on if the device that it *came* by
//! forwards, so the devices that answers come by have to, as long as the laboratory is connected. A guard drops what
//! would then be passed on between others.

use crate::message::Payload;
use crate::nft::{Purpose, Rule, Table};
use crate::offload::SavedOffloads;
use crate::state::{self, Record};
use crate::{IpNet, LabError, Namespace, RunState};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;

/// The group of the devices that lead from the host into laboratories ("tl"), by which the guards of several runs know
/// each other's.
pub(crate) const GROUP: u32 = 0x746c;
/// The switch for all devices.
pub(crate) const FORWARD: &str = "net/ipv4/ip_forward";
/// The offload that the kernel switches off for good when a device begins to forward (`dev_disable_lro`).
const RECEIVE_MERGING: &str = "rx-lro";
/// Settings of the laboratory's device in the host, which go with it: nothing that the laboratory says changes the
/// host's routes, and packets of strangers' addresses are not taken for theirs.
const CAUTIOUS: [(&str, &str, &str); 4] = [
    ("ipv6", "disable_ipv6", "1"),
    ("ipv4", "accept_redirects", "0"),
    ("ipv4", "accept_source_route", "0"),
    ("ipv4", "rp_filter", "1"),
];

/// A device of the host that forwards for the sake of a run, and how it was before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedForwarding {
    /// The device's name.
    pub device: String,
    /// Its `forwarding`.
    pub before: String,
    /// The switch for all devices. If it has changed since, somebody has set them all anew.
    pub switch: String,
    /// Whether it was asked to merge what it receives.
    pub merging: bool,
}

/// Writes to `state` which devices of `host` have to forward so that what comes by the device `own` from `network` is
/// passed on and answers come back, and makes the guard. It must outlive the change: drop it after [`restore`].
pub(crate) fn guard(
    host: &Namespace,
    state: &RunState,
    own: &str,
    network: IpNet,
) -> Result<(Table, Vec<SavedForwarding>), LabError> {
    let lenders = lenders(host, state)?;
    let name = guard_name(own);
    state.update(|record| {
        for device in &lenders {
            if !record.saved_forwarding.contains(device) {
                record.saved_forwarding.push(device.clone());
            }
        }
        record.nft_tables.push(name.clone());
    })?;
    let rules = rules(own, network, &lenders);
    Ok((Table::create(host, &name, Purpose::Guard, &rules)?, lenders))
}

/// Has the device `own` and the lenders forward, behind their guard.
pub(crate) fn lend(
    host: &Namespace,
    own: &str,
    lenders: &[SavedForwarding],
) -> Result<(), LabError> {
    be_cautious(host, own)?;
    let mut devices = lenders.iter().map(|lender| lender.device.as_str()).chain([own]);
    devices.try_for_each(|device| switch(host, device, "1").map(drop))
}

/// The name of the table that guards what is passed on for the device `own`.
pub(crate) fn guard_name(own: &str) -> String {
    format!("{own}g")
}

fn be_cautious(host: &Namespace, own: &str) -> Result<(), LabError> {
    for (family, setting, value) in CAUTIOUS {
        let path = format!("net/{family}/conf/{own}/{setting}");
        match host.set_sysctl(&path, value) {
            // A kernel without IPv6; settings that may not be written, as in a container.
            Err(error) if matches!(error.errno(), Some(libc::ENOENT | libc::EROFS)) => {
                tracing::debug!(%error, "left as it is");
            }
            other => other?,
        }
    }
    Ok(())
}

/// The devices by which the host reaches something and which do not forward on their own account.
fn lenders(host: &Namespace, state: &RunState) -> Result<Vec<SavedForwarding>, LabError> {
    let routes = host.routes()?;
    let used: BTreeSet<u32> = routes.iter().flat_map(|route| &route.devices).copied().collect();
    let ours = state.record().host_devices;
    let earlier = state::forwarding_now(state.directory(), &state.record());
    let all = host.sysctl(FORWARD)?;
    let mut lenders = Vec::new();
    for (number, device) in host.devices()? {
        if !used.contains(&number) || device == "lo" || ours.contains(&device) {
            continue;
        }
        if let Some(known) = earlier.iter().find(|saved| saved.device == device) {
            lenders.push(known.clone());
        } else if let Some(before) = forwarding(host, &device)?.filter(|before| before != "1") {
            let merging = host.save_offloads(&device).is_ok_and(|saved| asked_to_merge(&saved));
            lenders.push(SavedForwarding { device, before, switch: all.clone(), merging });
        }
    }
    Ok(lenders)
}

/// The rules for what is dropped: packets of strangers' addresses out of the laboratory; connections into it that
/// nobody in it has asked for; and whatever comes by a device that forwards for its sake and goes elsewhere.
fn rules(own: &str, network: IpNet, lenders: &[SavedForwarding]) -> Vec<Payload> {
    let mut rules = vec![
        Rule::default().arrives_by(own).not_from(network).drop(),
        Rule::default().leaves_by(own).new_connection().drop(),
    ];
    let elsewhere = |lender: &SavedForwarding| {
        Rule::default().arrives_by(&lender.device).leaves_group(GROUP).drop()
    };
    rules.extend(lenders.iter().map(elsewhere));
    rules
}

/// Puts the devices of `record` back, except those that a living run needs; tells whether anything changed.
pub(crate) fn restore(
    host: &Namespace,
    directory: &Path,
    record: &Record,
) -> Result<bool, LabError> {
    let needed = state::forwarding_of_others(directory, record.pid, record.host);
    let all = host.sysctl(FORWARD)?;
    let mut changed = Ok(false);
    for saved in &record.saved_forwarding {
        if needed.iter().any(|other| other.device == saved.device) || all != saved.switch {
            continue;
        }
        match (put_back(host, saved), &mut changed) {
            (Ok(done), Ok(changed)) => *changed |= done,
            (Err(error), Ok(_)) => changed = Err(error),
            _ => {}
        }
    }
    changed
}

fn put_back(host: &Namespace, saved: &SavedForwarding) -> Result<bool, LabError> {
    let changed = switch(host, &saved.device, &saved.before)?;
    if changed && saved.merging {
        let wanted = vec![(RECEIVE_MERGING.to_owned(), true)];
        host.restore_offloads(&SavedOffloads { device: saved.device.clone(), wanted })?;
    }
    Ok(changed)
}

fn asked_to_merge(saved: &SavedOffloads) -> bool {
    saved.wanted.iter().any(|(name, wanted)| *wanted && name == RECEIVE_MERGING)
}

/// Sets a device's forwarding; tells whether it was another. A device that is gone has none.
fn switch(host: &Namespace, device: &str, to: &str) -> Result<bool, LabError> {
    match forwarding(host, device)? {
        Some(now) if now != to => host.set_sysctl(&setting(device), to).map(|()| true),
        _ => Ok(false),
    }
}

fn forwarding(host: &Namespace, device: &str) -> Result<Option<String>, LabError> {
    match host.sysctl(&setting(device)) {
        Err(error) if error.errno() == Some(libc::ENOENT) => Ok(None),
        other => other.map(Some),
    }
}

fn setting(device: &str) -> String {
    format!("net/ipv4/conf/{device}/forwarding")
}
