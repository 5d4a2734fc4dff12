//! Reports: text, tables, charts, pages.

mod chart;
mod fixture;
mod invalid;
mod page;
mod report;
