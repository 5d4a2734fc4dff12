//! Turns: a test has the machine alone, or shares it with a few others.
//!
//! On a machine of few processors runs make each other late. A test is alone if it judges what was measured in real
//! time, compares settings of the whole machine, or looks at what a killed run leaves, which the next run sweeps. All
//! others wait most of their time, and share. Who shares goes first: the machine would stand still while one that is
//! to be alone waits for the last sharer. Nobody is alone while other test programs run (`scripts/test.py`).

use std::fs::File;
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError};

/// Tests that share the machine at the same time: one more than the processors of the smallest machine in use, for they
/// wait most of their time.
const SHARERS: usize = 3;

static MACHINE: Machine = Machine::new();

/// Waits until nobody else has the machine, or wants to share it.
pub fn alone() -> Turn {
    static QUIET: Once = Once::new();
    QUIET.call_once(await_quiet);
    MACHINE.alone()
}

/// Waits until other test programs have ended: who started this one keeps the lock of a file that it names till then.
fn await_quiet() {
    if let Some(file) = std::env::var_os("TRUNKLINE_BUSY") {
        File::open(file).unwrap().lock_shared().unwrap();
    }
}

/// Waits until nobody has the machine alone, and fewer than [`SHARERS`] share it.
pub fn beside() -> Turn {
    MACHINE.beside()
}

/// The right to use the machine until it is dropped.
pub struct Turn {
    machine: &'static Machine,
    alone: bool,
}

struct Machine {
    users: Mutex<Users>,
    left: Condvar,
}

struct Users {
    alone: bool,
    sharing: usize,
    /// Tests that wait to share. Nobody is alone before them.
    waiting: usize,
}

impl Machine {
    const fn new() -> Machine {
        let users = Users { alone: false, sharing: 0, waiting: 0 };
        Machine { users: Mutex::new(users), left: Condvar::new() }
    }

    /// The users. That another test failed does not spoil them: each change is one step.
    fn users(&self) -> MutexGuard<'_, Users> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, go_on: impl Fn(&Users) -> bool) -> MutexGuard<'_, Users> {
        let waits = |users: &mut Users| !go_on(users);
        self.left.wait_while(self.users(), waits).unwrap_or_else(PoisonError::into_inner)
    }

    fn alone(&'static self) -> Turn {
        let mut users = self.wait(|users| !users.alone && users.sharing == 0 && users.waiting == 0);
        users.alone = true;
        Turn { machine: self, alone: true }
    }

    fn beside(&'static self) -> Turn {
        self.users().waiting += 1;
        let mut users = self.wait(|users| !users.alone && users.sharing < SHARERS);
        users.waiting -= 1;
        users.sharing += 1;
        Turn { machine: self, alone: false }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut users = self.machine.users();
        match self.alone {
            true => users.alone = false,
            false => users.sharing -= 1,
        }
        drop(users);
        self.machine.left.notify_all();
    }
}

/// Eight threads take turns on a machine of their own, and tell each time how many others they met.
#[test]
fn who_is_alone_meets_nobody_and_sharers_are_few() {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    static OWN: Machine = Machine::new();
    /// Each sharer counts one, each that is alone counts more than all sharers together.
    static INSIDE: AtomicUsize = AtomicUsize::new(0);
    const ALONE: usize = 100;
    let most = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for number in 0..8 {
            let most = &most;
            scope.spawn(move || {
                for round in 0..200 {
                    let alone = (number + round) % 4 == 0;
                    let (turn, own) = if alone { (OWN.alone(), ALONE) } else { (OWN.beside(), 1) };
                    let before = INSIDE.fetch_add(own, SeqCst);
                    assert!(before == 0 || !alone && before < SHARERS, "{before} beside {own}");
                    most.fetch_max(before + own, SeqCst);
                    std::thread::yield_now();
                    INSIDE.fetch_sub(own, SeqCst);
                    drop(turn);
                }
            });
        }
    });
    assert_eq!((most.into_inner(), OWN.users().waiting), (ALONE, 0));
}
