//! Reports: text, tables, charts, pages.

mod chart;
mod fixture;
mod invalid;
mod report;
