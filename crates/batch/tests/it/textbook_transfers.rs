//! The ends of transfers by the textbooks' protocols, in the simulator and by formula.

use trunkline_model::{What, predictions};
use trunkline_scenario::Scenario;

/// The confirmation goes behind the answers to the last frame and to the empty message, which a slow or short way makes much of
/// the transfer.
#[test]
fn a_confirmation_waits_behind_answers() {
    for (ways, transport) in [
        ("forward = { rate = '1Mbit/s' }\nbackward = { rate = '100kbit/s' }", "'stop-and-wait'"),
        ("rate = '1Mbit/s'\nframing = 'ethernet'", "'go-back-n'"),
        // Answers of 84 bytes take longer than frames.
        (
            "framing = 'ethernet'\nforward = { rate = '1Mbit/s' }\nbackward = { rate = '50kbit/s' }",
            "'selective-repeat', frames = 3",
        ),
        // The sender's rate is a quarter of the line's.
        ("rate = '1Mbit/s'", "'go-back-n', rate = '250kbit/s'"),
        ("rate = '1Mbit/s'\nframing = 'ethernet'", "'selective-repeat', frames = 2"),
    ] {
        for frames in [1, 2, 3, 7, 20] {
            let text = format!(
                "host = [{{ name = 'a' }}, {{ name = 'b' }}]\n[[link]]\nbetween = ['a', 'b']\ndelay = '200us'\n{ways}\n\
                 [[traffic]]\nname = 't'\nkind = 'bulk'\nfrom = 'a'\nto = 'b'\nbytes = {}\nwrite = 500\n\
                 transport = {{ kind = {transport}, frame = 500, timeout = '10s' }}\n",
                500 * frames
            );
            let scenario = Scenario::parse(&text, "test.toml").unwrap().remove(0);
            let run = trunkline_sim::run(&scenario).unwrap();
            let predicted = trunkline_model::predict(&scenario).unwrap();
            let [took, expected] =
                [&run, &predicted].map(|run| run.traffic[0].samples[0].delay().as_millis_f64());
            let name = format!("{ways}, {transport}, {frames}: {took} ms, {expected} predicted");
            assert!((took / expected - 1.0).abs() < 1e-3, "{name}");
        }
    }
}

/// A board takes 50 ms for each frame of the sender, the empty one too: meanwhile the line is through with the last.
#[test]
fn an_empty_message_is_made_while_the_last_frame_goes() {
    for frames in [1, 2, 9] {
        let text = format!(
            "host = [{{ name = 'a', interface = 'i' }}, {{ name = 'b' }}]\n[interface.i]\nsend_block = '50ms'\n\
             [[link]]\nbetween = ['a', 'b']\nrate = '250kbit/s'\ndelay = '10ms'\n\
             [[traffic]]\nname = 't'\nkind = 'bulk'\nfrom = 'a'\nto = 'b'\nbytes = {}\nwrite = 992\n\
             transport = {{ kind = 'selective-repeat', frame = 992, timeout = '10s' }}\n",
            992 * frames
        );
        let scenario = Scenario::parse(&text, "test.toml").unwrap().remove(0);
        let runs =
            [trunkline_sim::run(&scenario).unwrap(), trunkline_model::predict(&scenario).unwrap()];
        let [took, expected] =
            runs.each_ref().map(|run| run.traffic[0].samples[0].delay().as_millis_f64());
        assert!((took / expected - 1.0).abs() < 0.002, "{frames}: {took} {expected}");
    }
}

/// The receiver's board takes 50 ms to answer the last frame, which came 60 ms + 0.26 ms - 32 ms ahead of the empty message.
#[test]
fn an_empty_message_waits_for_the_board_that_answers_the_last_frame() {
    let text = "host = [{ name = 'a', interface = 'i' }, { name = 'b', interface = 'j' }]\n\
                [interface.i]\nsend_block = '60ms'\n[interface.j]\ncontrol = '50ms'\n\
                [[link]]\nbetween = ['a', 'b']\nrate = '250kbit/s'\ndelay = '10ms'\n\
                [[traffic]]\nname = 't'\nkind = 'bulk'\nfrom = 'a'\nto = 'b'\nbytes = 1984\nwrite = 992\n\
                transport = { kind = 'go-back-n', frame = 992, timeout = '10s' }\n";
    let scenario = Scenario::parse(text, "test.toml").unwrap().remove(0);
    let runs =
        [trunkline_sim::run(&scenario).unwrap(), trunkline_model::predict(&scenario).unwrap()];
    let [took, expected] =
        runs.each_ref().map(|run| run.traffic[0].samples[0].delay().as_millis_f64());
    assert!((took / expected - 1.0).abs() < 0.002, "{took} {expected}");
}

/// The answer to the empty message costs the receiver's processor 1 ms and its board 50 ms, and the confirmation is behind it.
#[test]
fn a_confirmation_waits_for_the_host_that_answers() {
    for transport in ["'go-back-n', frames = 9", "'stop-and-wait'"] {
        let text = format!(
            "host = [{{ name = 'a' }}, {{ name = 'b', processor = 'p', interface = 'i' }}]\n\
             [processor.p]\ncontrol = '1ms'\n[interface.i]\ncontrol = '50ms'\n\
             [[link]]\nbetween = ['a', 'b']\nrate = '1Mbit/s'\ndelay = '10ms'\n\
             [[traffic]]\nname = 't'\nkind = 'bulk'\nfrom = 'a'\nto = 'b'\nbytes = 1984\nwrite = 992\n\
             transport = {{ kind = {transport}, frame = 992, timeout = '10s' }}\n"
        );
        let scenario = Scenario::parse(&text, "test.toml").unwrap().remove(0);
        let runs =
            [trunkline_sim::run(&scenario).unwrap(), trunkline_model::predict(&scenario).unwrap()];
        let [took, expected] =
            runs.each_ref().map(|run| run.traffic[0].samples[0].delay().as_millis_f64());
        assert!((took / expected - 1.0).abs() < 0.01, "{transport}: {took} {expected}");
    }
}

/// What is lost of the last window goes again after a time-out, and again: by the mean interval of frames alone the transfers end
/// sooner, and a note tells by how much at most.
#[test]
fn repetitions_of_the_last_frames_are_told() {
    for (frames, timeout) in [(200, "4s"), (20, "400ms")] {
        let text = format!(
            "host = [{{ name = 'a' }}, {{ name = 'b' }}]\n[[link]]\nbetween = ['a', 'b']\nrate = '1Mbit/s'\ndelay = '20ms'\n\
             forward = {{ loss = '20%' }}\n\
             [[traffic]]\nname = 't'\nkind = 'bulk'\nfrom = 'a'\nto = 'b'\nbytes = '512KiB'\nrepeat = 40\n\
             transport = {{ kind = 'selective-repeat', frames = {frames}, buffer = 10000, timeout = '{timeout}', rate = '500kbit/s' }}\n"
        );
        let scenario = Scenario::parse(&text, "test.toml").unwrap().remove(0);
        let found = predictions(&scenario).unwrap();
        let transfer = found.list.iter().find(|it| it.what == What::Transfer);
        let least = transfer.unwrap().value.time().unwrap().as_secs_f64();
        let told = found.notes.iter().find_map(|note| note.text.split_once("take up to "));
        let (_, late) = told.unwrap_or_else(|| panic!("{frames}: no note: {:?}", found.notes));
        let late: trunkline_core::Span = late.trim_end_matches(" longer").parse().unwrap();
        let run = trunkline_sim::run(&scenario).unwrap();
        let mut times: Vec<f64> =
            run.traffic[0].samples.iter().map(|it| it.delay().as_secs_f64()).collect();
        times.sort_by(f64::total_cmp);
        let case = format!("{frames}: {least} s and up to {late} more, {times:?}");
        assert!(times[times.len() / 2] > 1.03 * least, "{case}");
        assert!(times[1] > 0.95 * least && times[38] < least + late.as_secs_f64(), "{case}");
    }
}
