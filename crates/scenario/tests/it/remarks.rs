//! Keys that do less than what they say, or nothing: those of shared media, and the bounds of all others.

use crate::file::one;

/// As of links; a cluster has a medium of its own.
#[test]
fn idle_keys_of_the_queues_on_media_are_told() {
    let queue = "rate = '1Mbit/s'\ndiscipline = 'token-bucket:rate=1Mbit/s,mtu=1500'";
    let text = format!(
        "[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[medium]]\nname = 'm'\nkind = 'half-duplex'\n\
         stations = ['a', 'b']\n{queue}\n[[traffic]]\nname = 't'\nkind = 'bulk'\nfrom = 'a'\nto = 'b'\n\
         [[cluster]]\nname = 'c'\nkind = 'half-duplex'\nnodes = 2\ntest = 'latency'\n{queue}\n"
    );
    let found: Vec<String> = one(&text).remarks().iter().map(ToString::to_string).collect();
    let told = "discipline: mtu has no effect without a peak; give a peak, or leave it out";
    assert_eq!(found, [format!("medium.m.{told}"), format!("cluster.c.{told}")]);
}

#[test]
fn a_framing_of_the_wideband_channel_is_told() {
    let channel = |framing: &str| {
        let text = format!(
            "[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[medium]]\nname = 'm'\nkind = 'wideband'\n\
             stations = ['a', 'b']\nrate = '2316305bit/s'\n{framing}\n\
             [[traffic]]\nname = 't'\nkind = 'bulk'\nfrom = 'a'\nto = 'b'\n"
        );
        one(&text).remarks().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let told = "medium.m.framing has no effect: datagrams go as they are, and what comes with them is in control and usable; leave it out";
    assert_eq!(channel("framing = 'ethernet'"), [told]);
    assert_eq!(channel("framing = 'none'"), [""; 0]);
    assert_eq!(channel(""), [""; 0]);
}

/// What comes behind a stop has to find room, or a fabric that promises to lose nothing loses.
#[test]
fn a_headroom_too_small_for_the_largest_frame_is_told() {
    let fabric = |mtu: u32, more: &str| {
        let text = format!(
            "mtu = {mtu}\n[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[medium]]\nname = 'm'\nkind = 'leaf-spine'\n\
             stations = ['a', 'b']\nrate = '100Gbit/s'\ndelay = '100ns'\n{more}\n\
             [[traffic]]\nname = 't'\nkind = 'bulk'\nfrom = 'a'\nto = 'b'\n"
        );
        one(&text).remarks().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    for (mtu, more) in [(9216, "flow = 'pause'"), (65_535, ""), (65_535, "flow = 'drop'")] {
        assert_eq!(fabric(mtu, more), [""; 0], "{mtu} {more}");
    }
    for flow in ["credit", "drop"] {
        let told =
            "medium.m.headroom has no effect without flow = pause; give that, or leave it out";
        assert_eq!(fabric(1500, &format!("flow = '{flow}'\nheadroom = 10000")), [told]);
    }
    let told = "medium.m.ecn_threshold is above buffer, so that nothing is marked; give a lower one, or leave it out";
    assert_eq!(fabric(1500, "flow = 'drop'\nbuffer = 1000\necn_threshold = 1001"), [told]);
    assert_eq!(fabric(1500, "flow = 'credit'\nbuffer = 1000\necn_threshold = 1001"), [""; 0]);
    assert_eq!(fabric(1500, "flow = 'drop'\nbuffer = 1000\necn_threshold = 1000"), [""; 0]);
    let told = "medium.m.headroom has room for two frames of 9216 bytes, and those of up to 9217 may be lost: give 2 bytes more";
    assert_eq!(fabric(9217, "flow = 'pause'"), [told]);
    // 8750 bytes are under way on the cable and in the switch.
    let told = "medium.m.headroom has room for two frames of 625 bytes, and those of up to 1500 may be lost: give 1750 bytes more";
    assert_eq!(fabric(1500, "flow = 'pause'\nheadroom = 10000"), [told]);
}

/// A cluster's largest frame is its payload with the layer's header and what its medium adds.
#[test]
fn a_headroom_too_small_for_the_frames_of_a_cluster_is_told() {
    let found = |headroom: u32| {
        let text = format!(
            "[[cluster]]\nname = 'c'\nkind = 'leaf-spine'\nnodes = 2\ntest = 'latency'\nrate = '100Gbit/s'\n\
             delay = '0ns'\nswitch_latency = '0ns'\nflow = 'pause'\nframe = 1000\noverhead = 40\nheadroom = {headroom}\n"
        );
        one(&text).remarks().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let largest = 1000 + 40 + trunkline_transport::cstar::Frame::HEADER;
    assert_eq!(found(2 * largest), [""; 0]);
    let told = found(2 * largest - 2);
    assert!(told[0].ends_with("may be lost: give 2 bytes more"), "{told:?}");
}

/// What is just as large as another key allows is neither capped nor raised, and a schedule may bring a rate.
#[test]
fn what_just_fits_is_not_remarked() {
    let bulk = "kind = 'bulk'\nfrom = 'a'";
    let of_traffic = |key: &str| ("", format!("{bulk}\n{key}"));
    let of_link = |keys: &'static str| (keys, bulk.to_string());
    for (link, traffic) in [
        of_traffic("write = 512\ntransport = { kind = 'urp', block = 512, packet = 516 }"),
        of_traffic("transport = { kind = 'tcp', profile = 'bsd-reno', window = 65535 }"),
        of_traffic("transport = { kind = 'tcp', window = 1460 }"),
        of_traffic("transport = { kind = 'tcp', mss = 1460 }"),
        ("", "kind = 'bulk'\nfrom_each = ['a', 'b']\ncount = 2".into()),
        (
            "",
            "kind = 'greedy'\nfrom = 'a'\nduration = '3s'\nwarm_up = '2s'\ninterval = '1s'".into(),
        ),
        of_link("rate = '1Mbit/s'\ndiscipline = 'token-bucket:rate=2Mbit/s,mode=police'"),
        of_link("discipline = 'sfq'\nschedule = '0s rate=1mbit'"),
        of_link(
            "rate = '1Mbit/s'\ndiscipline = 'token-bucket:rate=1Mbit/s'\nschedule = '1s rate=2mbit'",
        ),
        of_link("rate = '1Mbit/s'\ndiscipline = 'codel:limit=2p'"),
    ] {
        let text = format!(
            "[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[host]]\nname = 'c'\n[[link]]\nbetween = ['a', 'c']\n{link}\n\
             [[link]]\nbetween = ['b', 'c']\n[[traffic]]\nname = 'x'\nto = 'c'\n{traffic}\n"
        );
        assert_eq!(one(&text).remarks(), [], "{text}");
    }
}

/// Keys of disciplines that count only beside others are told if they change something else, and only then.
#[test]
fn keys_of_disciplines_are_idle_or_not() {
    for (discipline, told) in [
        ("codel:limit=1500", 1),
        ("codel:limit=1p", 1),
        ("codel:limit=1501", 0),
        ("codel:limit=9c", 0),
        ("gather:count=4,limit=4p", 0),
        ("gather:count=5,limit=4p", 1),
        ("pie:ecn=true,mark_below=5%", 0),
        ("pie:ecn=false", 0),
        ("sfq:perturb=9s", 0),
        ("sfq:buckets=1", 0),
    ] {
        let text = format!(
            "[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[link]]\nbetween = ['a', 'b']\nrate = '1Mbit/s'\n\
             discipline = '{discipline}'\n[[traffic]]\nname = 't'\nkind = 'bulk'\nfrom = 'a'\nto = 'b'\n"
        );
        assert_eq!(one(&text).remarks().len(), told, "{discipline}");
    }
}
