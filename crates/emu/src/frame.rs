//! How large the frames of a host become.

use crate::plan::{Circuit, Plan};
use trunkline_capsule::HEADER;
use trunkline_host::wire::PREFIX;
use trunkline_scenario::{Reply, Scenario, Traffic, Transport, UDP_HEADER, Workload};

/// The smallest device, so that whatever a program does on its own fits.
const LEAST: u32 = 1500;
/// The largest.
const MOST: u32 = 65_535;
/// What a transport adds to the user's bytes in one packet, at most (URP: trailer and control of a block).
const TRAILER: u32 = 64;

/// The MTU of the device at station `station`: room for the largest packet of each traffic there, capsule
/// header included. What is larger still travels with its body cut, and counts on the path with its size.
pub fn mtu(scenario: &Scenario, plan: &Plan, station: usize) -> u32 {
    let ends_here = |circuit: &&Circuit| circuit.near == station || circuit.far == station;
    let here = plan.circuits.iter().filter(ends_here);
    let sizes = here.map(|circuit| packet(scenario, &scenario.traffic[circuit.way.traffic]));
    sizes.max().unwrap_or(LEAST).clamp(LEAST, MOST)
}

fn packet(scenario: &Scenario, traffic: &Traffic) -> u32 {
    let of = |transport: &Transport| match transport {
        Transport::Tcp(tcp) => tcp.mss.map_or(scenario.mtu, |mss| mss.saturating_add(TRAILER)),
        Transport::Urp(urp) => {
            capsule(if urp.packet == 0 { u32::from(urp.block) } else { urp.packet })
        }
        Transport::Listed(listed) => {
            let shape = (listed.entry.shape)(&listed.values);
            capsule(shape.unit.saturating_add(shape.header + PREFIX))
        }
        Transport::Datagram | Transport::Udp => capsule(message(&traffic.workload)),
    };
    let program = if traffic.program.is_some() { scenario.mtu } else { 0 };
    of(&traffic.transport).max(of(&traffic.reply_transport)).max(program)
}

fn capsule(body: u32) -> u32 {
    body.saturating_add(UDP_HEADER + HEADER as u32 + TRAILER)
}

/// The largest message of an application.
fn message(workload: &Workload) -> u32 {
    match workload {
        Workload::Interactive { sizes, reply, .. } => {
            let reply = if let Reply::Bytes(bytes) = reply { *bytes } else { 0 };
            sizes.iter().copied().max().unwrap_or(0).max(reply)
        }
        Workload::TimedEcho { sizes, .. } | Workload::TimedTransfer { sizes, .. } => {
            sizes.iter().copied().max().unwrap_or(0)
        }
        Workload::Bulk { write, .. }
        | Workload::Push { write, .. }
        | Workload::Greedy { write, .. } => *write,
        Workload::Paced { size, .. } => *size,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{plan, scenario};
    use trunkline_transport::envelope::packed;

    #[test]
    fn devices_have_room_for_the_largest_packet() {
        let with = |size: u32| {
            let largest = (size + 28).max(1500);
            let scenario = scenario(&format!(
                "mtu = {largest}\n[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[link]]\nbetween = ['a', 'b']\n\
                 [[traffic]]\nname = 't'\nkind = 'paced'\nfrom = 'a'\nto = 'b'\nsize = {size}\n\
                 rate = '1Mbit/s'\nduration = '1s'\ntransport = {{ kind = 'udp' }}\n"
            ));
            mtu(&scenario, &plan(&scenario), 0)
        };
        assert_eq!(with(100), 1500);
        assert_eq!(with(9000), 9000 + 28 + HEADER as u32 + 64);
        assert_eq!(with(65_507), 65_535);
    }

    #[test]
    fn the_largest_block_travels_whole() {
        let scenario = scenario(
            "[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[link]]\nbetween = ['a', 'b']\n\
             [[traffic]]\nname = 't'\nkind = 'bulk'\nfrom = 'a'\nto = 'b'\nbytes = 4096\n\
             transport = { kind = 'urp', block = 4096, packet = 0 }\n",
        );
        let mtu = mtu(&scenario, &plan(&scenario), 0);
        // A trailer with its check sum is nine envelopes, four of them controls.
        let body = packed::length(4096 + 9, 4) as u32;
        assert!(mtu >= UDP_HEADER + HEADER as u32 + body, "{mtu}");
    }
}
