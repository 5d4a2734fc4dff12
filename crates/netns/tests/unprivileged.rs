//! The whole laboratory as an ordinary user, in a user namespace.
//!
//! A user namespace can only be entered by a process with one thread, so this test has a `main` of its own;
//! as root it starts itself again as user 65534.

use std::env;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;
use trunkline_netns::{
    End, LabError, Namespace, Outside, Privilege, RunState, SpawnOptions, Unreachable, create_veth,
    enter_user_namespace_if_needed, processes_in, spawn,
};
use trunkline_skip::skipped;

/// `nobody` on Debian and most others.
const NOBODY: u32 = 65534;
const AGAIN: &str = "TRUNKLINE_TEST_UNPRIVILEGED";

fn main() {
    if env::var_os(AGAIN).is_none() && enter_user_namespace_if_needed().is_ok_and(held) {
        return start_again();
    }
    match env::var_os(AGAIN) {
        Some(_) => refuse_threads(),
        None => return skipped("only root can become another user"),
    }
    match enter_user_namespace_if_needed() {
        Err(error @ LabError::UserNamespace { .. }) => skipped(error),
        entered => examine(entered.unwrap()),
    }
}

fn held(privilege: Privilege) -> bool {
    matches!(privilege, Privilege::Held { .. })
}

/// As root: the same program as nobody.
fn start_again() {
    let mut command = Command::new(env::current_exe().unwrap());
    command.env(AGAIN, "1").env_remove("XDG_RUNTIME_DIR").uid(NOBODY).gid(NOBODY).current_dir("/");
    match command.status() {
        Err(error) => skipped(format_args!("cannot be started as user {NOBODY}: {error}")),
        Ok(status) => assert!(status.success(), "as user {NOBODY}: {status}"),
    }
}

fn refuse_threads() {
    let (end, wait) = mpsc::channel::<()>();
    let thread = std::thread::spawn(move || wait.recv());
    let told = enter_user_namespace_if_needed().unwrap_err();
    assert!(matches!(told, LabError::Threads(2)), "{told}");
    drop(end);
    let _ = thread.join();
}

fn examine(privilege: Privilege) {
    assert_eq!(privilege, Privilege::UserNamespace { uid: NOBODY, gid: NOBODY });
    let (near, far) = (Namespace::create().unwrap(), Namespace::create().unwrap());
    create_veth(&End::new(&near, "tl0"), &End::new(&far, "tl0"), 1500).unwrap();
    near.add_address("tl0", "10.77.0.1/24".parse().unwrap()).unwrap();
    far.add_address("tl0", "10.77.0.2/24".parse().unwrap()).unwrap();
    near.set_offloads_off("tl0").unwrap();
    assert_eq!(near.offloads("tl0").unwrap(), Vec::<String>::new());
    exchange(&near, &far);
    programs(&near, privilege);
    outside(&far, privilege);
    assert_eq!(processes_in(near.inode()).len(), 0);
    println!("a laboratory of user {NOBODY}: ok");
}

fn exchange(near: &Namespace, far: &Namespace) {
    let bind = |at: [u8; 4]| UdpSocket::bind((Ipv4Addr::from(at), 0)).unwrap();
    let from = near.run(|| bind([10, 77, 0, 1])).unwrap();
    let to = far.run(|| bind([10, 77, 0, 2])).unwrap();
    to.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    from.send_to(b"hello", to.local_addr().unwrap()).unwrap();
    assert_eq!(to.recv_from(&mut [0; 9]).unwrap(), (5, from.local_addr().unwrap()));
}

/// Programs run as 0, or with the numbers that they have outside; either way, ping works.
fn programs(near: &Namespace, privilege: Privilege) {
    for (identity, user) in [(None, 0), (Some(privilege), NOBODY)] {
        let options = SpawnOptions { identity, ..SpawnOptions::default() };
        let id = output(near, &["id", "-u"], options.clone()).unwrap();
        assert_eq!(String::from_utf8_lossy(&id.stdout).trim(), user.to_string());
        match output(near, &["ping", "-n", "-c", "1", "-W", "5", "10.77.0.2"], options) {
            Err(error) => skipped(error),
            Ok(output) => assert!(output.status.success(), "ping as {user}: {output:?}"),
        }
    }
}

fn output(near: &Namespace, words: &[&str], options: SpawnOptions) -> Result<Output, LabError> {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdout(Stdio::piped()).stderr(Stdio::piped());
    Ok(spawn(near, command, options)?.wait_with_output().unwrap())
}

fn outside(far: &Namespace, privilege: Privilege) {
    assert_eq!(privilege.uid(), NOBODY);
    let own = env::temp_dir().join(format!("tl-unprivileged-{}", std::process::id()));
    let host = Namespace::current().unwrap();
    let state = RunState::create(&own, &host).unwrap();
    let told = Outside::connect(&host, far, &state).unwrap_err();
    assert!(matches!(told, Unreachable::NotPrivileged), "{told}");
    drop(state);
    std::fs::remove_dir_all(&own).unwrap();
}
