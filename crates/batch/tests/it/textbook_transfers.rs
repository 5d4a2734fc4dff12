//! The ends of transfers by the textbooks' protocols, in the simulator and by formula.

use trunkline_model::{What, predictions};
use trunkline_scenario::Scenario;

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
