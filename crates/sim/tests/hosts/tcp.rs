//! TCP between hosts.

use crate::support::{COSTS, FREE, pair, run, traffic};
use trunkline_core::Cause;

/// A message and its answer over TCP take what their 40 bytes of headers more take.
#[test]
fn a_message_goes_and_comes_back() {
    for costs in [FREE, COSTS] {
        let run = run(&pair(&format!(
            "{costs}[[traffic]]\nname = \"t\"\nkind = \"interactive\"\nsizes = [1, 100, 5000, 100000]\n\
             repeat = 3\nfrom = \"a\"\nto = \"b\"\ntransport = {{ kind = \"tcp\" }}\n"
        )));
        let tcp = traffic(&run, "t");
        println!("{:?}", run.notes);
        for sample in &tcp.samples {
            println!("{} {} {:?}", sample.size, sample.delay(), sample.steps);
        }
        println!("{:?} {:?}", tcp.rounds, tcp.packets);
        assert_eq!(tcp.samples.len(), 12);
        assert!(tcp.samples.iter().all(|it| it.booked(Cause::Propagate).as_nanos() >= 10_000_000));
    }
}
