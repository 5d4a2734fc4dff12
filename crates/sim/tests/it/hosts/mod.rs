//! Scenarios in virtual time: hosts, interfaces, transports and workloads together.

mod bbr;
mod faults;
mod golden;
mod goodput;
mod greedy;
mod ideal;
mod interfaces;
mod kept;
mod l4s;
mod lds;
mod listed;
mod media;
mod opening;
mod random;
mod support;
mod tcp;
mod tcp_random;
mod tcp_theory;
mod times;
mod traffic;
