//! The metrics of a route, for the protocols above it (`RTA_METRICS` of rtnetlink(7), ip-route(8)).

use crate::message::Payload;
use std::time::Duration;

/// Numbers of `linux/rtnetlink.h`.
const LOCK: u16 = 1;
const MTU: u16 = 2;
const ADVMSS: u16 = 8;
const INITCWND: u16 = 11;
const FEATURES: u16 = 12;
const RTO_MIN: u16 = 13;
const QUICKACK: u16 = 15;
const CC_ALGO: u16 = 16;
/// `RTAX_FEATURE_ECN`.
const FEATURE_ECN: u32 = 1;

/// The metrics of a route, for the protocols above it. What is `None` or `false` is as the system has it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RouteMetrics {
    /// Largest network-layer packet in bytes.
    pub mtu: Option<u32>,
    /// Largest TCP segment that is asked for of the other end, in bytes without options.
    pub advmss: Option<u32>,
    /// Segments of TCP's first window.
    pub initcwnd: Option<u32>,
    /// TCP's shortest retransmission time-out, to the millisecond.
    pub rto_min: Option<Duration>,
    /// TCP acknowledges each segment at once.
    pub quickack: bool,
    /// TCP asks for explicit congestion notification (RFC 3168).
    pub ecn: bool,
    /// TCP's congestion control, by the kernel's name.
    pub congestion: Option<String>,
}

impl RouteMetrics {
    pub(crate) fn payload(&self) -> Payload {
        let mut payload = Payload::default();
        let millis = |span: Duration| u32::try_from(span.as_millis()).unwrap_or(u32::MAX).max(1);
        let rto_min = self.rto_min.map(millis);
        let numbers = [
            // The kernel heeds a shortest time-out only if it is locked (tcp_rto_min).
            (LOCK, rto_min.map(|_| 1 << RTO_MIN)),
            (MTU, self.mtu),
            (ADVMSS, self.advmss),
            (INITCWND, self.initcwnd),
            (FEATURES, self.ecn.then_some(FEATURE_ECN)),
            (RTO_MIN, rto_min),
            (QUICKACK, self.quickack.then_some(1)),
        ];
        for (kind, value) in numbers {
            payload = match value {
                Some(value) => payload.u32(kind, value),
                None => payload,
            };
        }
        match &self.congestion {
            Some(name) => payload.text(CC_ALGO, name),
            None => payload,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::attributes;

    #[test]
    fn only_what_is_set_is_said() {
        assert!(RouteMetrics::default().payload().bytes().is_empty());
        let metrics = RouteMetrics {
            mtu: Some(1500),
            rto_min: Some(Duration::from_millis(1000)),
            congestion: Some("reno".into()),
            ..RouteMetrics::default()
        };
        let payload = metrics.payload();
        let said: Vec<(u16, Vec<u8>)> =
            attributes(payload.bytes()).map(|(kind, value)| (kind, value.to_vec())).collect();
        let number = |value: u32| value.to_ne_bytes().to_vec();
        let expected = [
            (LOCK, number(1 << RTO_MIN)),
            (MTU, number(1500)),
            (RTO_MIN, number(1000)),
            (CC_ALGO, b"reno\0".to_vec()),
        ];
        assert_eq!(said, expected);
    }
}
