//! Turns: a test has the machine alone, or shares it with one or a few others.
//!
//! On a machine of few processors runs make each other late. A test is alone if it keeps the processors at work, judges
//! to parts of a millisecond what was measured in real time, compares settings of the whole machine, or looks at what a
//! killed run leaves, which the next run sweeps. It is among few if it judges what was measured, but mostly waits, and
//! milliseconds do not matter: two such kept two processors at work for a tenth of the time, so four hardly meet. All
//! others share. Who shares goes first, then the few: the machine would stand still while one that is to be alone waits
//! for the last sharer. Nobody is alone or among few while other test programs run (`scripts/test.py`).

use std::fs::File;
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError};

/// How a test bears others, in the order in which they go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Beside,
    AmongFew,
    Alone,
}

/// How many tests of each kind have the machine at the same time. Those that share wait most of their time.
const AT_ONCE: [usize; 3] = [6, 4, 1];

static MACHINE: Machine = Machine::new();

/// Waits until nobody else has the machine, and all others have had it that are not to be alone.
pub fn alone() -> Turn {
    await_quiet();
    MACHINE.enter(Kind::Alone)
}

/// The same, but a few others may have the machine that have come here, too.
pub fn among_few() -> Turn {
    await_quiet();
    MACHINE.enter(Kind::AmongFew)
}

/// Waits until only a few have the machine, who share it.
pub fn beside() -> Turn {
    MACHINE.enter(Kind::Beside)
}

/// Waits until other test programs have ended: who started this one keeps the lock of a file that it names till then.
fn await_quiet() {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        if let Some(file) = std::env::var_os("TRUNKLINE_BUSY") {
            File::open(file).unwrap().lock_shared().unwrap();
        }
    });
}

/// The right to use the machine until it is dropped.
pub struct Turn {
    machine: &'static Machine,
}

struct Machine {
    users: Mutex<Users>,
    left: Condvar,
}

struct Users {
    /// Those that have the machine, all of one kind.
    inside: usize,
    kind: Kind,
    /// Of each kind.
    waiting: [usize; 3],
}

impl Users {
    /// Whether one more of a kind may have the machine: never before those that wait and are of an earlier kind.
    fn admit(&self, kind: Kind) -> bool {
        let room = self.inside == 0 || self.kind == kind && self.inside < AT_ONCE[kind as usize];
        room && self.waiting[..kind as usize].iter().all(|&waiting| waiting == 0)
    }
}

impl Machine {
    const fn new() -> Machine {
        let users = Users { inside: 0, kind: Kind::Beside, waiting: [0; 3] };
        Machine { users: Mutex::new(users), left: Condvar::new() }
    }

    /// The users. That another test failed does not spoil them: each change is one step.
    fn users(&self) -> MutexGuard<'_, Users> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&'static self, kind: Kind) -> Turn {
        let mut users = self.users();
        users.waiting[kind as usize] += 1;
        let waits = |users: &mut Users| !users.admit(kind);
        users = self.left.wait_while(users, waits).unwrap_or_else(PoisonError::into_inner);
        users.waiting[kind as usize] -= 1;
        users.inside += 1;
        users.kind = kind;
        drop(users);
        // Another one may go in beside it, or one of a later kind need no longer wait for it.
        self.left.notify_all();
        Turn { machine: self }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.machine.users().inside -= 1;
        self.machine.left.notify_all();
    }
}

#[test]
fn few_of_a_kind_are_admitted_and_never_two_kinds() {
    use Kind::{Alone, AmongFew, Beside};
    let admitted = |inside, kind, waiting| {
        let users = Users { inside, kind, waiting };
        [Beside, AmongFew, Alone].map(|it| users.admit(it))
    };
    assert_eq!(admitted(0, Alone, [0, 0, 0]), [true, true, true]);
    assert_eq!(admitted(0, Alone, [0, 1, 0]), [true, true, false]);
    assert_eq!(admitted(0, Alone, [1, 0, 0]), [true, false, false]);
    assert_eq!(admitted(5, Beside, [0, 0, 0]), [true, false, false]);
    assert_eq!(admitted(6, Beside, [0, 0, 0]), [false, false, false]);
    assert_eq!(admitted(1, AmongFew, [0, 0, 0]), [false, true, false]);
    assert_eq!(admitted(1, AmongFew, [1, 0, 0]), [false, false, false]);
    assert_eq!(admitted(3, AmongFew, [0, 0, 0]), [false, true, false]);
    assert_eq!(admitted(4, AmongFew, [0, 0, 0]), [false, false, false]);
    assert_eq!(admitted(1, Alone, [0, 0, 0]), [false, false, false]);
}

/// Eight threads take turns on a machine of their own, and each looks whom it meets.
#[test]
fn nobody_is_left_waiting() {
    static OWN: Machine = Machine::new();
    let inside = Mutex::new([0; 3]);
    std::thread::scope(|scope| {
        for number in 0..8 {
            let inside = &inside;
            scope.spawn(move || {
                for round in 0..200 {
                    let kind = [Kind::Beside, Kind::AmongFew, Kind::Alone][(number + round) % 3];
                    let turn = OWN.enter(kind);
                    let met = {
                        let mut inside = inside.lock().unwrap();
                        inside[kind as usize] += 1;
                        *inside
                    };
                    assert!(met[kind as usize] <= AT_ONCE[kind as usize], "{met:?}");
                    assert_eq!(met.iter().sum::<usize>(), met[kind as usize], "{met:?}");
                    std::thread::yield_now();
                    inside.lock().unwrap()[kind as usize] -= 1;
                    drop(turn);
                }
            });
        }
    });
    let users = OWN.users();
    assert_eq!((users.inside, users.waiting), (0, [0; 3]));
}
