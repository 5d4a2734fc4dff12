//! What the kernel of a host is told of TCP: settings for a host, and for each connection's route.

use crate::EmuError;
use crate::plan::{Circuit, Plan};
use std::collections::BTreeMap;
use trunkline_netns::RouteMetrics;
use trunkline_scenario::{Scenario, TcpSettings, Traffic, Transport};

/// Bytes of the IPv4 and TCP headers without options (RFC 791, RFC 9293).
const HEADERS: u32 = 40;
/// Least and first bytes of a connection's receive and send buffers: Linux's own defaults, whatever this machine's are.
const BUFFERS: [&str; 2] = ["4096 131072", "4096 16384"];
/// The largest receive buffer that Linux gives of its own accord, as it was up to 6.14: what the `linux` profile has.
const MOST_RECEIVED: u64 = 6 << 20;
/// Twice the largest send buffer that Linux gives. The kernel counts memory: a sent segment of 1024 bytes, alone in its packet, took
/// 2600 of it, and less than half of what the profile has was on its way.
const MOST_SENT: u64 = 8 << 20;

/// The kernel's TCP settings of one host, by the names below `net/ipv4/`.
pub type Sysctls = BTreeMap<&'static str, String>;

/// The settings of a scenario that a kernel has once for all connections of a host.
const SHARED: [(&str, &str, Pick); 4] = [
    ("sack", "tcp_sack", |tcp| tcp.sack),
    ("timestamps", "tcp_timestamps", |tcp| tcp.timestamps),
    ("window_scaling", "tcp_window_scaling", |tcp| tcp.window_scaling),
    ("ecn", "tcp_ecn", TcpSettings::offers_ecn),
];

type Pick = fn(&TcpSettings) -> Option<bool>;

/// The profile's word if a traffic says nothing: 4.4BSD knew neither SACK nor ECN, and the windows of
/// its time had 16 bits. The others are as the kernel is.
fn with_profile(tcp: &TcpSettings, pick: Pick) -> Option<bool> {
    let old = tcp.profile == "bsd-reno";
    pick(tcp).or(old.then_some(false))
}

/// The settings that both ends of a traffic use, if it uses TCP.
fn tcp_of(traffic: &Traffic) -> impl Iterator<Item = &TcpSettings> {
    [&*traffic.transport, &*traffic.reply_transport].into_iter().filter_map(|transport| {
        match transport {
            Transport::Tcp(tcp) => Some(tcp),
            _ => None,
        }
    })
}

/// The settings of the host at station `station`. Our own connections agree upon what they want one by one,
/// when they are made; those of an outside program are made later, and take what the host has.
///
/// # Errors
/// If a program's traffic and another one that ends there want different ones.
pub fn sysctls(scenario: &Scenario, plan: &Plan, station: usize) -> Result<Sysctls, EmuError> {
    let ends_here = |circuit: &&Circuit| circuit.near == station || circuit.far == station;
    let here: Vec<&Traffic> = (plan.circuits.iter().filter(ends_here))
        .map(|circuit| &scenario.traffic[circuit.way.traffic])
        .collect();
    let [received, sent] = buffers(&here);
    let mut settings = Sysctls::from([
        ("tcp_no_metrics_save", "1".to_string()),
        ("tcp_rmem", received),
        ("tcp_wmem", sent),
    ]);
    if here.iter().all(|traffic| traffic.program.is_none()) {
        return Ok(settings);
    }
    for (key, name, pick) in SHARED {
        let wanted = agreed(&here, pick).map_err(|[first, second]| EmuError::Disagree {
            host: scenario.hosts[plan.stations[station].host].name.clone(),
            first,
            second,
            setting: key,
        })?;
        settings.extend(wanted.map(|wanted| (name, u8::from(wanted).to_string())));
    }
    Ok(settings)
}

/// Least, first and largest bytes of the receive and the send buffers of a host with the ends of `traffic`. Who asks for a
/// larger window than Linux's own has buffers of twice its size, for the kernel counts memory.
fn buffers(traffic: &[&Traffic]) -> [String; 2] {
    let windows = traffic.iter().flat_map(|one| tcp_of(one)).filter_map(|tcp| tcp.window);
    let wanted = windows.map(|window| window.bytes().saturating_mul(2)).max().unwrap_or(0);
    let most = |own: u64| wanted.clamp(own, i32::MAX as u64);
    let [received, sent] = BUFFERS;
    [format!("{received} {}", most(MOST_RECEIVED)), format!("{sent} {}", most(MOST_SENT))]
}

/// What all of `traffic` want, if any of it wants anything; the names of two that want different things.
fn agreed(traffic: &[&Traffic], pick: Pick) -> Result<Option<bool>, [String; 2]> {
    let wish = |one: &&Traffic| -> Vec<(bool, String)> {
        let wanted = tcp_of(one).filter_map(|tcp| with_profile(tcp, pick));
        wanted.map(|wanted| (wanted, one.name.clone())).collect()
    };
    let wishes: Vec<(bool, String)> = traffic.iter().flat_map(wish).collect();
    let Some((wanted, first)) = wishes.first() else { return Ok(None) };
    match wishes.iter().find(|(other, _)| other != wanted) {
        Some((_, second)) => Err([first.clone(), second.clone()]),
        None => Ok(Some(*wanted)),
    }
}

/// What the route of a traffic's connections tells TCP. Capsules have the device's own size: how their
/// packets count on the path is written in them.
pub fn metrics(scenario: &Scenario, traffic: &Traffic) -> RouteMetrics {
    let Some(tcp) = tcp_of(traffic).next() else {
        let mtu = traffic.program.is_some().then_some(scenario.mtu);
        return RouteMetrics { mtu, ..RouteMetrics::default() };
    };
    let mtu = tcp.mss.map_or(scenario.mtu, |mss| mss.saturating_add(HEADERS));
    RouteMetrics {
        mtu: Some(mtu),
        advmss: Some(mtu.saturating_sub(HEADERS)),
        initcwnd: tcp.initial_window,
        rto_min: tcp.min_rto.map(|span| span.to_duration()),
        quickack: tcp.delayed_ack.is_some_and(|span| span.is_zero()),
        ecn: tcp.offers_ecn() == Some(true),
        congestion: traffic.program.is_some().then(|| tcp.congestion.clone()).flatten(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{plan, scenario};

    const HOSTS: &str = "[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[host]]\nname = 'c'\n\
        [[link]]\nbetween = ['a', 'b']\n[[link]]\nbetween = ['c', 'b']\n";

    fn greedy(name: &str, from: &str, tcp: &str) -> String {
        format!(
            "[[traffic]]\nname = '{name}'\nkind = 'greedy'\nfrom = '{from}'\nto = 'b'\n\
             duration = '3s'\ncommand = 'iperf3 -c {{peer}}'\n\
             transport = {{ kind = 'tcp', {tcp} }}\n"
        )
    }

    #[test]
    fn settings_are_the_hosts_and_its_routes() {
        let tcp =
            "sack = false, timestamps = false, mss = 1000, initial_window = 2, delayed_ack = '0ms'";
        let scenario = scenario(&format!("{HOSTS}{}", greedy("t", "a", tcp)));
        let plan = plan(&scenario);
        let settings = sysctls(&scenario, &plan, 0).unwrap();
        assert_eq!(settings.get("tcp_sack").map(String::as_str), Some("0"));
        assert!(!settings.contains_key("tcp_ecn"));
        assert!(!sysctls(&scenario, &plan, 2).unwrap().contains_key("tcp_sack"));
        let metrics = metrics(&scenario, &scenario.traffic[0]);
        assert_eq!(
            (metrics.mtu, metrics.advmss, metrics.initcwnd),
            (Some(1040), Some(1000), Some(2))
        );
        assert!(metrics.quickack);
    }

    #[test]
    fn buffers_are_linuxs_unless_a_larger_window_is_asked_for() {
        let both = [greedy("t", "a", ""), greedy("u", "c", "window = '16MiB'")];
        let scenario = scenario(&format!("{HOSTS}{}", both.concat()));
        let plan = plan(&scenario);
        let of =
            |station: usize, key: &str| sysctls(&scenario, &plan, station).unwrap()[key].clone();
        assert_eq!(of(0, "tcp_rmem"), "4096 131072 6291456");
        assert_eq!(of(0, "tcp_wmem"), "4096 16384 8388608");
        for station in [1, 2] {
            assert_eq!(of(station, "tcp_rmem"), "4096 131072 33554432", "{station}");
            assert_eq!(of(station, "tcp_wmem"), "4096 16384 33554432", "{station}");
        }
    }

    #[test]
    fn programs_of_one_host_share_its_kernel() {
        let both = [greedy("one", "a", "sack = true"), greedy("two", "c", "sack = false")];
        let scenario = scenario(&format!("{HOSTS}{}{}", both[0], both[1]));
        let plan = plan(&scenario);
        assert!(sysctls(&scenario, &plan, 0).is_ok());
        let error = sysctls(&scenario, &plan, 1).unwrap_err().to_string();
        assert!(error.contains("host 'b'") && error.contains("sack"), "{error}");
        let mut ours = scenario;
        ours.traffic.iter_mut().for_each(|traffic| traffic.program = None);
        assert!(!sysctls(&ours, &plan, 1).unwrap().contains_key("tcp_sack"));
    }
}
