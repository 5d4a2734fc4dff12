//! Laws of both message layers, over random schedules and networks.

mod careful;
mod hostile;
mod net;
mod traditional;
