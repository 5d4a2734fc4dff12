//! Keys of shared media that do less than what they say, or nothing.

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
    let told = "medium.m.headroom has room for two frames of 9216 bytes, and those of up to 9217 may be lost: give 2 bytes more";
    assert_eq!(fabric(9217, "flow = 'pause'"), [told]);
    // 8750 bytes are under way on the cable and in the switch.
    let told = "medium.m.headroom has room for two frames of 625 bytes, and those of up to 1500 may be lost: give 1750 bytes more";
    assert_eq!(fabric(1500, "flow = 'pause'\nheadroom = 10000"), [told]);
}
