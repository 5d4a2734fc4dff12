//! Real sockets between namespaces that the tests make; skipped with a message if that is not allowed.

mod flows;
mod programs;
mod support;
mod tcp;
mod urp;
