//! Outside programs: started in their hosts' namespaces, awaited, ended, and their results read.

mod child;
mod command;
mod results;

use crate::plan::FlowPlan;
use crate::run::FlowRun;
use crate::{EndpointError, clock};
use child::{Child, Ending, Finished};
use command::Commands;
use results::{Outcome, read};
pub use results::{Printed, read_printed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;
use trunkline_core::{Span, Time};
use trunkline_engine::Note;
use trunkline_netns::{Patience, listening};

/// The time between two looks at a program that is awaited.
const LOOK: Duration = Duration::from_millis(5);
/// The most time that a server has to end by itself if somebody waits for the end of all, as when the run is interrupted.
const HURRY: Span = Span::from_secs(5);

/// A flow that outside programs make. Its thread lives as long as they do, for they are killed with it.
#[derive(Debug)]
pub(crate) struct ProgramFlow {
    orders: Option<Sender<Order>>,
    done: Arc<OnceLock<FlowRun>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
enum Order {
    Start(Time),
    Stop,
}

impl ProgramFlow {
    /// Starts the server, if there is one, and waits until it listens.
    pub fn prepare(
        plan: &FlowPlan,
        program: &trunkline_scenario::Program,
    ) -> Result<ProgramFlow, EndpointError> {
        let commands = Commands::new(program, plan)?;
        let (orders, inbox) = channel();
        let (ready, readiness) = channel();
        let done = Arc::new(OnceLock::new());
        let (plan, place) = (plan.clone(), Arc::clone(&done));
        let body = move || {
            let mut stage = match Stage::open(plan, commands) {
                Ok(stage) => stage,
                Err(error) => return drop(ready.send(Err(error))),
            };
            // If nobody waits any more, there is nobody to measure for.
            if ready.send(Ok(())).is_ok() {
                let run = stage.perform(&inbox);
                let _ = place.set(run);
            }
        };
        let thread = trunkline_netns::thread("tl-program").and_then(|it| it.spawn(body));
        let thread = thread.map_err(EndpointError::Thread)?;
        let started = readiness.recv().unwrap_or_else(|_| Err(gone()));
        let flow = ProgramFlow { orders: Some(orders), done, thread: Some(thread) };
        started.map(|()| flow)
    }

    pub fn start(&self, at: Time) {
        self.order(Order::Start(at));
    }

    pub fn stop(&self) {
        self.order(Order::Stop);
    }

    /// A thread that is done takes no orders.
    fn order(&self, order: Order) {
        let _ = self.orders.as_ref().map(|orders| orders.send(order));
    }

    /// Whether the client has ended.
    pub fn ended(&self) -> bool {
        self.done.get().is_some()
    }

    /// Bytes that it has delivered, which are known when it has ended.
    pub fn delivered(&self) -> u64 {
        self.done.get().map_or(0, |run| run.delivered_bytes)
    }

    /// Stops it if it has not ended; what it has measured.
    pub fn join(mut self) -> FlowRun {
        self.close();
        let lost = || FlowRun { notes: vec![Note::failed(&gone())], ..FlowRun::default() };
        self.done.get().cloned().unwrap_or_else(lost)
    }

    fn close(&mut self) {
        self.orders = None;
        // A panic there was printed when it happened.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Drop for ProgramFlow {
    fn drop(&mut self) {
        self.close();
    }
}

fn gone() -> EndpointError {
    EndpointError::Transport(
        "the thread of an outside program has ended; see the messages above".into(),
    )
}

/// The programs of a flow, from inside its thread.
struct Stage {
    plan: FlowPlan,
    commands: Commands,
    server: Option<Child>,
}

impl Stage {
    fn open(plan: FlowPlan, commands: Commands) -> Result<Stage, EndpointError> {
        let mut stage = Stage { plan, commands, server: None };
        if let Some(command) = stage.commands.server.clone() {
            stage.await_server(&command)?;
        }
        Ok(stage)
    }

    fn await_server(&mut self, command: &str) -> Result<(), EndpointError> {
        let namespace = &self.plan.destination.namespace;
        let before = listening(namespace)?;
        let mut server = Child::start(namespace, command)?;
        let mut patience = Patience::begin(namespace);
        while patience.lasts() {
            let ended = server.ended();
            let now = listening(namespace)?;
            let own = now.contains(&self.commands.port);
            if own || (!self.commands.names_port && now != before) {
                break;
            }
            // One that goes into the background has a successor that listens, if not at once.
            if ended && !server.gone_well() {
                let reason = server.finish(Ending::Natural).complaint();
                return Err(EndpointError::Program { command: command.into(), reason });
            }
            std::thread::sleep(LOOK);
        }
        self.server = Some(server);
        Ok(())
    }

    /// Waits for the start, runs the client to its end, and reads what there is.
    fn perform(&mut self, inbox: &Receiver<Order>) -> FlowRun {
        let at = match inbox.recv() {
            Ok(Order::Start(at)) => at,
            Ok(Order::Stop) | Err(_) => return FlowRun::default(),
        };
        if !sleep_until(at, inbox) {
            return FlowRun::default();
        }
        let command = self.commands.client.clone();
        match Child::start(&self.plan.source.namespace, &command) {
            Ok(client) => self.run(client, inbox),
            Err(error) => failed(&error),
        }
    }

    fn run(&mut self, mut client: Child, inbox: &Receiver<Order>) -> FlowRun {
        let mut ending = Ending::Natural;
        while !client.ended() {
            match inbox.try_recv() {
                Err(TryRecvError::Empty) | Ok(Order::Start(_)) => client.wait(LOOK),
                Ok(Order::Stop) | Err(TryRecvError::Disconnected) => {
                    ending = Ending::Stopped;
                    break;
                }
            }
        }
        let client = client.finish(ending);
        let server = self.server.take().map(|server| self.end_server(server, ending, inbox));
        let (commands, plan, offset) = (&self.commands, &self.plan, clock::wall_offset());
        read(&Outcome { client, server, commands, plan, offset })
    }
}

impl Stage {
    /// Ends the server when it had the time to end by itself, if it does that: it hears of the client's end as much later as
    /// the path is long, and what it has printed before, or while it is told to end, is not whole.
    fn end_server(&self, mut server: Child, ending: Ending, inbox: &Receiver<Order>) -> Finished {
        let began = clock::now();
        let once = self.commands.serves_once();
        let mut patience = if once { self.plan.linger.scaled(2, 1) } else { Span::ZERO };
        let mut told = ending == Ending::Stopped;
        while !server.ended() {
            told |= matches!(inbox.try_recv(), Ok(Order::Stop) | Err(TryRecvError::Disconnected));
            patience = if told { patience.min(HURRY) } else { patience };
            if clock::now().since(began) >= patience {
                break;
            }
            server.wait(LOOK);
        }
        server.finish(Ending::Stopped)
    }
}

/// Sleeps until `at`. Answers whether nobody has ordered to stop.
fn sleep_until(at: Time, inbox: &Receiver<Order>) -> bool {
    loop {
        let left = at.since(clock::now());
        if left.is_zero() {
            return true;
        }
        match inbox.recv_timeout(left.to_duration()) {
            Err(RecvTimeoutError::Timeout) => (),
            Ok(Order::Start(_)) => (),
            Ok(Order::Stop) | Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
}

fn failed(error: &EndpointError) -> FlowRun {
    FlowRun { notes: vec![Note::failed(error)], ..FlowRun::default() }
}
