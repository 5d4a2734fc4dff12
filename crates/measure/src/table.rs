//! Tables of named cells: a published CSV or a list of runs reduced to figures.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

/// The name of a cell: key column to value, as text.
pub type Key = BTreeMap<String, String>;

/// A key as text: `discipline=round_robin message_bytes=12`.
pub fn key_text(key: &Key) -> String {
    let parts: Vec<String> = key.iter().map(|(name, value)| format!("{name}={value}")).collect();
    parts.join(" ")
}

/// A figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// In the table's unit.
    pub value: f64,
    /// Whether it is marked as doubtful. It is shown and not judged by.
    pub suspect: bool,
    /// The reason, or another remark; empty if there is none.
    pub note: String,
}

impl Cell {
    /// A figure without doubt or remark.
    pub fn of(value: f64) -> Cell {
        Cell { value, suspect: false, note: String::new() }
    }
}

/// Figures of one unit, each under a [`Key`], in a fixed order.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// The name of what it shows.
    pub name: String,
    /// The unit of all its figures; empty for none.
    pub unit: String,
    /// Keys for which the table has a row and no figure.
    pub empty: Vec<Key>,
    cells: Vec<(Key, Cell)>,
    /// The place of each key's cell.
    index: BTreeMap<Key, usize>,
}

/// The columns and rows of a published CSV that are read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Columns {
    /// The columns that name a cell.
    pub keys: Vec<String>,
    /// The column with the figure. Its unit is told by the end of its name (see [`unit_of`]).
    pub value: String,
    /// Only rows that have these values in these columns.
    pub only: BTreeMap<String, String>,
}

impl Columns {
    /// The figure `value` under `keys`, of all rows.
    pub fn new(keys: &[&str], value: &str) -> Columns {
        let keys = keys.iter().map(|&key| key.into()).collect();
        Columns { keys, value: value.into(), only: BTreeMap::new() }
    }

    /// Only rows with `value` in `column`.
    pub fn only(mut self, column: &str, value: &str) -> Columns {
        self.only.insert(column.into(), value.into());
        self
    }
}

/// The reason why a table cannot be made, read or compared.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The file cannot be opened.
    #[error("cannot read {path}: {source}; check the path")]
    Open {
        /// The file.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The text is not CSV.
    #[error(
        "{table} is not a CSV table: {source}; it needs a header row and equally many cells in each"
    )]
    Csv {
        /// The table.
        table: String,
        /// The cause.
        source: csv::Error,
    },
    /// There is no such column.
    #[error("{table} has no column '{column}'; it has {columns}")]
    Column {
        /// The table.
        table: String,
        /// The column asked for.
        column: String,
        /// Those there are.
        columns: String,
    },
    /// A figure is not a number.
    #[error(
        "{table}, line {line}, {column}: '{text}' is no number; correct it or leave the cell empty"
    )]
    Number {
        /// The table.
        table: String,
        /// The line.
        line: u64,
        /// The column.
        column: String,
        /// The text that is there.
        text: String,
    },
    /// A key has two figures.
    #[error("{table} has two figures for {key}; name more key columns or restrict the rows")]
    Twice {
        /// The table.
        table: String,
        /// The key.
        key: String,
    },
    /// Two tables in different units.
    #[error("'{published}' is in {one} and '{ours}' in {other}; convert one of them")]
    Units {
        /// One table.
        published: String,
        /// Its unit.
        one: String,
        /// The other table.
        ours: String,
        /// Its unit.
        other: String,
    },
}

/// The unit that a column's name ends with, by the convention of the published tables: `delay_ms`,
/// `throughput_kB_per_s`; empty if it names none.
pub fn unit_of(column: &str) -> &'static str {
    const UNITS: [(&str, &str); 9] = [
        ("_bytes_per_s", "B/s"),
        ("_kB_per_s", "kB/s"),
        ("_Mbit_per_s", "Mbit/s"),
        ("packets_per_s", "packets/s"),
        ("_ms", "ms"),
        ("_us", "us"),
        ("_ns", "ns"),
        ("_s", "s"),
        ("_bytes", "B"),
    ];
    UNITS.iter().find(|(end, _)| column.ends_with(end)).map_or("", |(_, unit)| unit)
}

impl Table {
    /// An empty table.
    pub fn new(name: &str, unit: &str) -> Table {
        Table {
            name: name.into(),
            unit: unit.into(),
            empty: Vec::new(),
            cells: Vec::new(),
            index: BTreeMap::new(),
        }
    }

    /// Reads a published CSV file: one header row, a cell empty if no figure is given, `suspect` 1
    /// for a doubtful figure, `note` for a remark (both columns may be missing).
    ///
    /// # Errors
    /// If the file or a column is missing, a figure is no number, or a key has two figures.
    pub fn open(path: &Path, columns: &Columns) -> Result<Table, TableError> {
        let shown = path.display().to_string();
        let file = std::fs::File::open(path)
            .map_err(|source| TableError::Open { path: shown.clone(), source })?;
        Table::read(&shown, file, columns)
    }

    /// Reads the CSV text that `source` gives, as [`open`](Table::open) does.
    ///
    /// # Errors
    /// As there.
    pub fn read(name: &str, source: impl Read, columns: &Columns) -> Result<Table, TableError> {
        let broken = |source| TableError::Csv { table: name.into(), source };
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(source);
        let places = Places::find(name, reader.headers().map_err(broken)?, columns)?;
        let mut table = Table::new(name, unit_of(&columns.value));
        for record in reader.records() {
            let record = record.map_err(broken)?;
            if places.wanted(&record) {
                table.put(places.key(&record), places.cell(name, &record)?)?;
            }
        }
        Ok(table)
    }

    /// The cells, in the table's order.
    pub fn cells(&self) -> &[(Key, Cell)] {
        &self.cells
    }

    /// The cell under `key`.
    pub fn get(&self, key: &Key) -> Option<&Cell> {
        self.index.get(key).map(|&index| &self.cells[index].1)
    }

    /// Adds a cell, or with `None` an entry in [`empty`](Table::empty).
    ///
    /// # Errors
    /// [`TableError::Twice`] if the table has this key.
    pub fn put(&mut self, key: Key, cell: Option<Cell>) -> Result<(), TableError> {
        let Some(cell) = cell else {
            self.empty.push(key);
            return Ok(());
        };
        if self.index.contains_key(&key) {
            return Err(TableError::Twice { table: self.name.clone(), key: key_text(&key) });
        }
        self.index.insert(key.clone(), self.cells.len());
        self.cells.push((key, cell));
        Ok(())
    }

    /// The same figures under other keys; those for which `rename` gives `None` are left out.
    ///
    /// # Errors
    /// [`TableError::Twice`] if two keys become one.
    pub fn rekey(&self, rename: impl Fn(&Key) -> Option<Key>) -> Result<Table, TableError> {
        let mut table = Table::new(&self.name, &self.unit);
        table.empty = self.empty.iter().filter_map(&rename).collect();
        for (key, cell) in &self.cells {
            if let Some(key) = rename(key) {
                table.put(key, Some(cell.clone()))?;
            }
        }
        Ok(table)
    }

    /// The same figures times `factor`, in another unit.
    #[must_use]
    pub fn converted(mut self, factor: f64, unit: &str) -> Table {
        self.cells.iter_mut().for_each(|(_, cell)| cell.value *= factor);
        Table { unit: unit.into(), ..self }
    }
}

/// The places of the columns.
struct Places<'a> {
    keys: Vec<(&'a str, usize)>,
    value: (&'a str, usize),
    only: Vec<(usize, &'a str)>,
    suspect: Option<usize>,
    note: Option<usize>,
}

impl<'a> Places<'a> {
    fn find(
        table: &str,
        headers: &csv::StringRecord,
        columns: &'a Columns,
    ) -> Result<Places<'a>, TableError> {
        let position = |name: &str| headers.iter().position(|header| header == name);
        let needed = |name: &'a str| match position(name) {
            Some(index) => Ok((name, index)),
            None => Err(TableError::Column {
                table: table.into(),
                column: name.into(),
                columns: headers.iter().collect::<Vec<_>>().join(", "),
            }),
        };
        let only = columns.only.iter().map(|(name, value)| Ok((needed(name)?.1, value.as_str())));
        Ok(Places {
            keys: columns.keys.iter().map(|key| needed(key)).collect::<Result<_, _>>()?,
            value: needed(&columns.value)?,
            only: only.collect::<Result<_, _>>()?,
            suspect: position("suspect"),
            note: position("note"),
        })
    }

    fn wanted(&self, record: &csv::StringRecord) -> bool {
        self.only.iter().all(|&(index, value)| &record[index] == value)
    }

    fn key(&self, record: &csv::StringRecord) -> Key {
        self.keys.iter().map(|&(name, index)| (name.into(), record[index].into())).collect()
    }

    fn cell(&self, table: &str, record: &csv::StringRecord) -> Result<Option<Cell>, TableError> {
        let text = &record[self.value.1];
        if text.is_empty() {
            return Ok(None);
        }
        let value = text.parse().ok().filter(|value: &f64| value.is_finite());
        let value = value.ok_or_else(|| TableError::Number {
            table: table.into(),
            line: record.position().map_or(0, csv::Position::line),
            column: self.value.0.into(),
            text: text.into(),
        })?;
        let suspect = self.suspect.is_some_and(|index| &record[index] == "1");
        let note = self.note.map_or_else(String::new, |index| record[index].into());
        Ok(Some(Cell { value, suspect, note }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
discipline,message_bytes,delay_ms,suspect,note
fifo,1,3.824,0,
fifo, 2 ,3.878,1,\"misread, perhaps\"
fifo,12,,0,not legible
rrobin,1,3.9,0,
";

    fn read(text: &str, columns: &Columns) -> Result<Table, TableError> {
        Table::read("test.csv", text.as_bytes(), columns)
    }

    fn columns() -> Columns {
        Columns::new(&["discipline", "message_bytes"], "delay_ms")
    }

    fn key(discipline: &str, bytes: &str) -> Key {
        Key::from([
            ("discipline".into(), discipline.into()),
            ("message_bytes".into(), bytes.into()),
        ])
    }

    #[test]
    fn a_published_table_is_read() {
        let table = read(TEXT, &columns()).unwrap();
        assert_eq!((table.unit.as_str(), table.cells().len()), ("ms", 3));
        let two = table.get(&key("fifo", "2")).unwrap();
        assert_eq!((two.value, two.suspect, two.note.as_str()), (3.878, true, "misread, perhaps"));
        assert_eq!(table.empty, [key("fifo", "12")]);
        assert_eq!(key_text(&table.cells()[2].0), "discipline=rrobin message_bytes=1");
    }

    #[test]
    fn rows_can_be_chosen() {
        let fifo = Columns::new(&["message_bytes"], "delay_ms").only("discipline", "fifo");
        assert_eq!(read(TEXT, &fifo).unwrap().cells().len(), 2);
    }

    #[test]
    fn wrong_tables_are_refused_with_cause_and_remedy() {
        let complaint =
            |text: &str, columns: &Columns| read(text, columns).unwrap_err().to_string();
        let twice = Columns::new(&["message_bytes"], "delay_ms");
        assert!(complaint(TEXT, &twice).contains("two figures for message_bytes=1; name more"));
        let unknown = Columns::new(&["size"], "delay_ms");
        assert!(complaint(TEXT, &unknown).contains("no column 'size'; it has discipline, message"));
        for wrong in ["3.9x", "inf", "NaN", "--"] {
            let text = TEXT.replace("3.9,", &format!("{wrong},"));
            let found = complaint(&text, &columns());
            assert!(found.contains("line 5, delay_ms") && found.contains(wrong), "{found}");
        }
        assert!(complaint("discipline,message_bytes,delay_ms\na,1\n", &columns()).contains("CSV"));
        let missing = Table::open(Path::new("/nowhere.csv"), &columns()).unwrap_err().to_string();
        assert!(missing.contains("/nowhere.csv") && missing.contains("check the path"));
    }

    #[test]
    fn units_come_from_the_column() {
        for (column, unit) in [
            ("delay_ms", "ms"),
            ("throughput_per_conversation_bytes_per_s", "B/s"),
            ("throughput_kB_per_s", "kB/s"),
            ("packets_per_s", "packets/s"),
            ("window_bytes", "B"),
            ("processes", ""),
        ] {
            assert_eq!(unit_of(column), unit, "{column}");
        }
        let table = read(TEXT, &columns()).unwrap().converted(1000.0, "us");
        assert_eq!((table.cells()[0].1.value, table.unit.as_str()), (3824.0, "us"));
    }

    #[test]
    fn keys_can_be_renamed_and_dropped() {
        let table = read(TEXT, &columns()).unwrap();
        let size = |key: &Key| {
            (key["discipline"] == "fifo")
                .then(|| Key::from([("size".into(), key["message_bytes"].clone())]))
        };
        let renamed = table.rekey(size).unwrap();
        assert_eq!((renamed.cells().len(), renamed.empty.len()), (2, 1));
        assert_eq!(key_text(&renamed.cells()[1].0), "size=2");
        assert!(matches!(table.rekey(|_| Some(Key::new())), Err(TableError::Twice { .. })));
    }
}
