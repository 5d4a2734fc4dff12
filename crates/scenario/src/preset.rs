//! Named paths, each with its numbers and their source.

use crate::SettingError;

/// A named path.
#[derive(Debug)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub summary: &'static str,
    /// Its settings.
    pub settings: &'static [(&'static str, &'static str)],
    /// The source of the numbers, and what the preset leaves out.
    pub source: &'static str,
}

impl Preset {
    /// The preset called `name`.
    ///
    /// # Errors
    /// If there is none.
    pub fn find(name: &str) -> Result<&'static Preset, SettingError> {
        PRESETS.iter().find(|preset| preset.name == name).ok_or_else(|| SettingError::Preset {
            name: name.to_string(),
            known: PRESETS.iter().map(|preset| preset.name).collect::<Vec<_>>().join(", "),
        })
    }
}

/// Every preset.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "t1-1989",
        summary: "Hawley's Datakit T1 trunk with the 32 KE hardware fifo",
        settings: &[
            ("rate", "1.544Mbit/s"),
            ("framing", "t1-lapd"),
            ("queue", "fifo:limit=32KiB"),
            ("delay", "0"),
        ],
        source: "Hawley 1989 §1.3 (32 KE hardware fifo, three feet of line: no delay), §2.1 (framing). \
                 His round robin: --queue round-robin:quantum=64 --limit 500KB --output-buffer 1KiB (§1.3, §1.4).",
    },
    Preset {
        name: "geo-satellite",
        summary: "One hop over a geostationary satellite",
        settings: &[("rate", "10Mbit/s"), ("delay", "279ms")],
        source: "RFC 2488 §2: 239.6 ms from the sub-satellite point, 279.0 ms at the edge of view, one hop \
                 one way. The rate is a choice. No errors: coded links are nearly free of them.",
    },
    Preset {
        name: "leo-satellite",
        summary: "A consumer service over low-orbit satellites",
        settings: &[
            ("down-rate", "100Mbit/s"),
            ("up-rate", "10Mbit/s"),
            ("delay", "20ms"),
            ("jitter", "ordered:normal:3ms"),
            ("loss", "0.3%"),
        ],
        source: "Choices, of the order that users of such services report; no single source. Handovers every \
                 15 s are not modelled.",
    },
    Preset {
        name: "transatlantic",
        summary: "London to New York over fibre",
        settings: &[("rate", "1Gbit/s"), ("delay", "35ms")],
        source: "5570 km great circle at 2/3 of the speed of light is 27.9 ms; a cable's detours of a quarter \
                 make 35 ms. The rate is a choice.",
    },
    Preset {
        name: "dsl",
        summary: "An ADSL2+ line with interleaving",
        settings: &[("down-rate", "16Mbit/s"), ("up-rate", "1Mbit/s"), ("delay", "10ms")],
        source: "ITU-T G.992.5 allows 24 and 1.4 Mbit/s; the rates are those of a line of middle length, the \
                 delay that of common interleaving: choices. The cells' overhead is taken to be in the rates.",
    },
    Preset {
        name: "lte",
        summary: "A mobile telephone on a fairly loaded cell",
        settings: &[
            ("down-rate", "20Mbit/s"),
            ("up-rate", "5Mbit/s"),
            ("delay", "25ms"),
            ("jitter", "correlated:normal:4ms:rho=0.8"),
        ],
        source: "Choices, no single source. For the real variation of a cell give a recorded trace: --down-trace FILE.",
    },
    Preset {
        name: "wifi-bad",
        summary: "The far corner of the house",
        settings: &[
            ("rate", "6Mbit/s"),
            ("delay", "3ms"),
            ("jitter", "ordered:exponential:2ms"),
            ("loss", "ge:p=1%,r=25%"),
        ],
        source: "6 Mbit/s is the lowest OFDM rate of IEEE 802.11a/g; loss in bursts of four packets, 3.8 % in \
                 all, and the rest are choices.",
    },
    Preset {
        name: "wideband-1987",
        summary: "The Wideband satellite network as Lambert found it",
        settings: &[("rate", "1.05Mbit/s"), ("delay", "900ms"), ("mtu", "1500")],
        source: "RFC 1030 §7: round trip 1.8 s, just over 1 Mbit/s of 3 left by the channel's overhead. Its delays \
                 in multiples of 600 ms, from the reservation scheme, are not modelled.",
    },
    Preset {
        name: "lds",
        summary: "An OC-3 ATM link through the Link Delay Simulator at its least delay",
        settings: &[
            ("rate", "155.52Mbit/s"),
            ("framing", "atm-aal5"),
            ("delay", "1.5ms"),
            ("mtu", "9180"),
        ],
        source: "LDS report §3.1 (OC-3), §3.8 (1.5 ms least delay), §3.10.1 (9180-byte packets).",
    },
];
