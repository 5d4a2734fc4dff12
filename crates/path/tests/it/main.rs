//! Disciplines, links, media and impairments, by their rules, properties and published figures.

mod board;
mod discipline_aqm;
mod discipline_codel;
mod discipline_text;
mod disciplines;
mod eager;
mod impairments;
mod link;
mod medium;
mod page;
mod shorter;
mod token_bucket;
